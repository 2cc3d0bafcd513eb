package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/corollary-dev/corollary/internal/bubble"
	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/survey"
)

// twoNotes are two more downstreams of kinds that nothing else has.
const twoNotes = `  - {name: note, apiVersion: v1, kind: Secret, template: 'metadata: {name: {{ .metadata.name }}}'}
  - {name: account, apiVersion: v1, kind: ServiceAccount, template: 'metadata: {name: {{ .metadata.name }}}'}
`

// A preview lists what the config has forgotten as long as it exists, also where the field manager was changed with no
// word of the previous one; the status drops it once it is gone and the upstream is edited, and nothing asks before.
func TestLeftOverUntilItIsGone(t *testing.T) {
	t.Parallel()
	for _, manager := range []string{"NAME", "NAME-2"} {
		t.Run(manager, spaced(func(t *testing.T, ns, name string) {
			conf := fill(widgetConfig, ns, name)
			leave(t, ns, strings.Replace(conf, "conventions:\n", twoNotes+"conventions:\n", 1), "a")
			conf = strings.Replace(conf, "fieldManager: "+name, "fieldManager: "+fill(manager, ns, name), 1)
			r, counter := startCounted(t, conf)
			recorded := func() string {
				list, _ := testkit.Get(t, widgets, ns, "a").Object["status"].(map[string]any)["downstreams"].([]any)
				var parts []string
				for _, item := range list {
					m, _ := item.(map[string]any)
					parts = append(parts, fmt.Sprint(m["name"], " ", m["state"]))
				}
				return strings.Join(parts, ", ")
			}
			says := func(want string) {
				t.Helper()
				testkit.Eventually(t, patience, func() (bool, string) { return recorded() == want, recorded() })
			}
			says("account Leftover, config InSync, note Leftover")
			listed := func(want string) {
				t.Helper()
				surveyAll(t, testkit.Config(t), survey.Options{}, conf).expect(t, "a", want)
			}
			listed("none a, forgotten a, forgotten a")
			testkit.Delete(t, secretKind, ns, "a")
			listed("none a, forgotten a")
			settle(t, counter)
			bubble.Quiet(t, counter)
			r.restart(counter, conf)
			bubble.Quiet(t, counter)
			if n := counter.Total(func(q testkit.Request) bool { return q.Resource != "" }); n > 0 {
				t.Errorf("%d requests of what is in sync: %v", n, counter.Snapshot())
			}
			testkit.Apply(t, ns, widget("a", `{data: {a: c}}`))
			if manager == "NAME" { // else what the previous manager has applied stays in the status
				says("account Leftover, config InSync")
			}
			waitData(t, ns, "a", "a", "c")
			listed("none a, forgotten a")
		}))
	}
}
