package engine_test

import (
	"strings"
	"testing"

	"github.com/corollary-dev/corollary/internal/bubble"
	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/survey"
)

// The label of conventions gets another value while an upstream is paused: no watch shows its objects any more, nothing
// is written to them, and Ready goes on saying how they do. It costs a read of each, once.
func TestPausedAndNoWatchShows(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"start", "reload"} {
		t.Run(at, spaced(func(t *testing.T, ns, name string) {
			conf := fill(widgetConfig, ns, name)
			r, counter := startCounted(t, conf)
			for _, up := range []string{"a", "b"} {
				applyReady(t, ns, up, `{data: {key: value}}`)
				testkit.Patch(t, widgets, ns, up, "author", fill(`{"metadata":{"annotations":{"NAME.example.com/paused":"true"}}}`, ns, name))
				waitThat(t, widgets, ns, up, isPaused)
			}
			if at == "start" {
				r.halt()
			}
			settle(t, counter)
			conf = replaceOnce(t, conf, `managed: "yes"`, `managed: "true"`)
			surveyAll(t, testkit.Config(t), survey.Options{}, conf).expect(t, "a", "leave a")
			if at == "start" {
				testkit.Delete(t, configMaps, ns, "b")
				r.restart(counter, conf)
			} else {
				r.reloadTo(conf)
				quiet(t, counter)
				bubble.Quiet(t, counter)
				if n := counter.Total(func(q testkit.Request) bool { return q.Verb == "GET" && strings.Contains(q.Path, "/configmaps/") }); n != 2 {
					t.Errorf("%d reads of two objects: %v", n, counter.Snapshot())
				}
				testkit.Delete(t, configMaps, ns, "b")
				testkit.Patch(t, widgets, ns, "b", "author", `{"metadata":{"annotations":{"example.com/seen":"yes"}}}`)
			}
			waitCondition(t, widgets, ns, "b", "Ready", "False")
			if u := testkit.Get(t, widgets, ns, "a"); !isPaused(u) {
				t.Errorf("Ready of what exists is %v", u.Object["status"])
			}
			settle(t, counter)
			bubble.Quiet(t, counter)
			testkit.Patch(t, widgets, ns, "a", "author", fill(`{"metadata":{"annotations":{"NAME.example.com/paused":null}}}`, ns, name))
			waitThat(t, configMaps, ns, "a", func(u *obj) bool { return u.GetLabels()[name+".example.com/managed"] == "true" })
			readyIs(t, widgets, ns, "a", "True", "Ready", "")
		}))
	}
}

// isPaused reports whether Ready is True and says that the upstream is paused.
func isPaused(u *obj) bool {
	status, _, message := condition(u, "Ready")
	return status == "True" && strings.HasPrefix(message, "paused: ")
}
