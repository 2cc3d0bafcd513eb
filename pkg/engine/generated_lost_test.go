package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/survey"
)

// TestImmutableWithoutMarks: where nothing says any more which keys of an immutable Secret were generated, one that
// nothing gives goes with it, and an event says so.
func TestImmutableWithoutMarks(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		conf := strings.Replace(generatedConfig(t, ns, name, "updatePolicy: Recreate"), "events: None", "events: Warnings", 1)
		conf = replaceOnce(t, conf, "      stringData:", "      immutable: true\n      stringData:")
		r := startWidget(t, ns, conf)
		_, pin := generatedOf(t, ns, "a")
		r.halt()
		testkit.Patch(t, secretKind, ns, "a", "somebody", `{"metadata":{"labels":null,"annotations":null,"managedFields":[{}]}}`)
		start(t, testkit.Config(t), strings.Replace(conf, ".data.password}", ".data.pw}", 1)).ready()
		secretText(t, ns, "a", "pw", anyText)
		secretText(t, ns, "a", "pin", is(pin))
		waitEvent(t, ns, "a", "NewRandomValue", "a new random value for data.pw, data.pin: data.password goes, which nothing gives any more")
	})
}

// TestPlanOfPausedSaysWhatIsLost: a preview of a config that drops a generated key says so also of a paused upstream.
func TestPlanOfPausedSaysWhatIsLost(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		conf := generatedConfig(t, ns, name)
		startWidget(t, ns, conf).halt()
		testkit.Patch(t, widgets, ns, "a", "somebody", fill(`{"metadata":{"annotations":{"NAME.example.com/paused":"true"}}}`, ns, name))
		renamed := strings.Replace(conf, "{path: .data.password}", "{path: .data.pw}, {path: .data.root}", 1)
		for conf, want := range map[string]string{conf: "", renamed: "once the upstream is resumed: a new random value for data.pw, data.root, data.pin: data.password goes, which nothing gives any more"} {
			f := surveyAll(t, testkit.Config(t), survey.Options{}, conf)["a"]
			if f == nil || len(f.Changes) != 1 || f.Changes[0].Risk != want {
				t.Errorf("the preview is %+v, want the risk %q", f, want)
			}
		}
	})
}

// TestRemovedGeneratedKey: a generated key that someone removed, the way to rotate a value, gets a new
// value: a preview and the event say so, whether it was removed while a process ran or not.
func TestRemovedGeneratedKey(t *testing.T) {
	t.Parallel()
	for _, running := range []bool{true, false} {
		t.Run(fmt.Sprint("running ", running), spaced(func(t *testing.T, ns, name string) {
			conf := strings.Replace(generatedConfig(t, ns, name), "events: None", "events: All", 1)
			r := startWidget(t, ns, conf)
			before, pin := generatedOf(t, ns, "a")
			if !running {
				r.halt()
			}
			testkit.Patch(t, secretKind, ns, "a", "somebody", `{"data":{"password":null}}`)
			if !running {
				surveyAll(t, testkit.Config(t), survey.Options{}, conf).expect(t, "a", "repair a")
				start(t, testkit.Config(t), conf).ready()
			}
			secretText(t, ns, "a", "password", not(before))
			secretText(t, ns, "a", "pin", is(pin))
			waitEvent(t, ns, "a", "Repaired", "lacks a generated value, which is generated again")
		}))
	}
}
