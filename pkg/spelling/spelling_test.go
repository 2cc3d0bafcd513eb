package spelling_test

import (
	"testing"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/pkg/spelling"
)

func TestClosest(t *testing.T) {
	names := []string{"run", "render", "replicas", "name", "namespace", "x", "Deployment"}
	for _, test := range []struct{ word, want, reason string }{
		{"run", "run", "the name itself"},
		{"rnu", "run", "letters that changed places are one mistake"},
		{"rn", "run", "one letter may be missing from a short word"},
		{"car", "", "of a short word two letters may not differ"},
		{"replicsa", "replicas", "changed places"},
		{"replika", "replicas", "a third of the letters may differ"},
		{"repl", "", "more than a third is a guess"},
		{"deploymnet", "Deployment", "capitals do not count"},
		{"y", "", "nothing of the name is there"},
		{"nam", "name", "the nearer one, not the one that begins alike"},
		{"", "", "no word"},
	} {
		must.Same(t, test.want, spelling.Closest(test.word, names), test.reason, test.word)
	}
	must.Same(t, "matches", spelling.Closest("match", []string{"patch", "matches"}), "of a word whose end is missing it")
	must.Same(t, "rot", spelling.Closest("rat", []string{"rut", "rot"}), "of equally close names it")
}
