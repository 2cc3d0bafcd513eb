package operator

import (
	"strings"
	"testing"

	"github.com/corollary-dev/corollary/pkg/status"
)

// TestTogether: the message about several objects names their namespaces, if these are not the same.
func TestTogether(t *testing.T) {
	in := func(namespaces ...string) (list []ObjectFact) {
		for _, ns := range namespaces {
			list = append(list, ObjectFact{status.Fact{Name: "db", Progressing: true, Reason: "Progressing"},
				&DesiredObject{Several: true, Target: Ref{Namespace: ns, Name: "main"}}})
		}
		return list
	}
	for want, list := range map[string][]ObjectFact{
		"0 of 2 ready; not ready: red-dev/main, red-prod/main": in("red-dev", "red-prod"),
		"0 of 2 ready; not ready: main, main":                  in("red", "red"),
	} {
		if got := together(list).Message; !strings.Contains(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
