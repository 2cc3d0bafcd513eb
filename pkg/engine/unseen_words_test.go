package engine_test

import (
	"testing"

	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/survey"
)

// An object that no watch shows since the label of conventions has another value is of the downstream that the status
// records, also where another one has its kind: a preview says by what it is replaced.
func TestWordsOfWhatNoWatchShows(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		conf := replaceOnce(t, fill(widgetConfig, ns, name), "conventions:\n",
			"  - {name: other, apiVersion: v1, kind: ConfigMap, template: 'metadata: {name: {{ .metadata.name }}-other}'}\nconventions:\n")
		leave(t, ns, conf, "a")
		conf = replaceOnce(t, conf, `managed: "yes"`, `managed: "true"`)
		conf = replaceOnce(t, conf, "default .metadata.name }}", "default (printf \"%s-b\" .metadata.name) }}")
		f := surveyAll(t, testkit.Config(t), survey.Options{}, conf)["a"]
		for _, c := range f.Changes {
			if want := ns + "/a-b has replaced it"; c.Leftover && c.Reason != want {
				t.Errorf("%s is said to go since %q, want %q", c.Target, c.Reason, want)
			}
		}
		if n := len(f.Changes); n != 3 {
			t.Errorf("%d changes: %v", n, f.Changes)
		}
	})
}
