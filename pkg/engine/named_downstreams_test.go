package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// Objects that say of which downstream they are need no record of it: after a restart with an edited config and
// upstream, without any status, what is forgotten stays, values follow their downstream, policies are those of the
// downstream, and the order is that of the config.
func TestObjectsNameTheirDownstream(t *testing.T) {
	t.Parallel()
	down := func(name, kind, lines string) string {
		return "\n  - name: " + name + "\n    apiVersion: v1\n    kind: " + kind + "\n" + lines
	}
	random := "    " + strings.TrimSpace(generatedLine) + "\n"
	named := func(suffix string) string {
		return "    template: \"metadata: {name: '{{ .metadata.name }}-" + suffix + "'}\"\n"
	}
	when := "    when: \"!has(self.spec.data)\"\n"
	for _, row := range []struct {
		reason        string
		before, after string // the downstreams
		change        string // the spec after the edit
		check         func(t *testing.T, ns, one, two string)
	}{
		{"one of a kind leaves the config", down("one", "Secret", random+named("one")) + down("two", "Secret", random+named("two")),
			down("one", "Secret", random+named("other")), "{}", func(t *testing.T, ns, one, two string) {
				secretText(t, ns, "a-other", "password", equals(one))
				secretText(t, ns, "a-two", "password", equals(two))
				mustBeAbsent(t, secretKind, ns, "a-one", "a-other has replaced it")
			}},
		{"one is renamed and another one leaves", down("one", "Secret", random+named("one")) + down("two", "Secret", random+named("two")),
			down("two", "Secret", random+named("one2")), "{}", func(t *testing.T, ns, one, two string) {
				secretText(t, ns, "a-one2", "password", equals(two))
				secretText(t, ns, "a-one", "password", equals(one))
			}},
		{"one is kept, the other one is not", down("one", "Secret", random+"    deletionPolicy: Orphan\n"+when+named("one")) + down("two", "Secret", random+when+named("two")),
			"", "{data: {off: 'yes'}}", func(t *testing.T, ns, one, _ string) {
				secretText(t, ns, "a-one", "password", equals(one))
				mustBeAbsent(t, secretKind, ns, "a-two", "it is not wanted, and not kept")
			}},
		{"names are swapped", down("one", "Secret", random+named("one")) + down("two", "Secret", random+named("two")),
			down("one", "Secret", random+named("two")) + down("two", "Secret", random+named("one")), "{}", func(t *testing.T, ns, one, two string) {
				eventuallyCondition(t, ns, "a", "False", "Conflict", "is of downstream")
				secretText(t, ns, "a-one", "password", equals(one))
				secretText(t, ns, "a-two", "password", equals(two))
			}},
		{"what comes after is older", down("one", "Secret", random+when+named("one")) + down("two", "Secret", random+when+"    after: [{name: one, until: Created}]\n"+named("two")),
			"", "{data: {off: 'yes'}}", func(t *testing.T, ns, _, _ string) {
				mustExist(t, secretKind, ns, "a-one", "what comes after it is held")
				testkit.Patch(t, secretKind, ns, "a-two", "somebody", `{"metadata":{"finalizers":null}}`)
				waitGone(t, secretKind, ns, "a-one")
			}},
		{"of objects that are never changed, one was made before they had names", down("one", "Secret", "    updatePolicy: CreateOnly\n"+random+named("one")) +
			down("two", "Secret", "    updatePolicy: CreateOnly\n"+random+named("two")), down("two", "Secret", random+named("two")), "{}",
			func(t *testing.T, ns, one, two string) {
				secretText(t, ns, "a-one", "password", equals(one))
				secretText(t, ns, "a-two", "password", equals(two))
			}},
	} {
		t.Run(row.reason, spaced(func(t *testing.T, ns, name string) {
			head, tail := around(t, fill(widgetConfig, ns, name))
			if strings.Contains(row.reason, "before they had names") {
				old := start(t, testkit.Config(t), head+row.before+tail).ready()
				applyReady(t, ns, "a", "{}")
				old.halt()
			}
			tail = replaceOnce(t, tail, "  hash:", "  downstreamName: {annotation: op.example.com/of}\n  hash:")
			r := start(t, testkit.Config(t), head+row.before+tail).ready()
			testkit.Apply(t, ns, widget("a", "{}"))
			waitCondition(t, widgets, ns, "a", "Ready", "True")
			if strings.Contains(row.reason, "older") {
				testkit.Delete(t, secretKind, ns, "a-one")
				<-time.After(time.Minute)
				testkit.Patch(t, secretKind, ns, "a-two", "somebody", `{"metadata":{"finalizers":["example.com/held"]}}`)
			}
			one, two := secretText(t, ns, "a-one", "password", anyText), secretText(t, ns, "a-two", "password", anyText)
			<-time.After(time.Minute)
			r.halt()
			testkit.Patch(t, widgets, ns, "a", "somebody", `{"status":null}`, "status")
			testkit.Apply(t, ns, widget("a", row.change))
			conf := head + row.after + tail
			if row.after == "" {
				conf = head + row.before + tail
			}
			start(t, testkit.Config(t), conf).ready()
			<-time.After(10 * time.Minute)
			row.check(t, ns, one, two)
			left := strings.Contains(fmt.Sprint(testkit.Get(t, widgets, ns, "a").Object["status"]), "Leftover")
			if want := strings.Contains(row.reason, "leaves"); left != want {
				t.Errorf("the status says of something that it is left over: %t, want %t", left, want)
			}
		}))
	}
}

func equals(want string) func(string) bool { return func(have string) bool { return have == want } }

// The name that an object says is that of its downstream when it was written: what is recorded since is newer, and two
// that say one name are recorded apart.
func TestRenamedDownstreams(t *testing.T) {
	t.Parallel()
	down := func(name, lines, suffix string) string {
		return "\n  - {name: " + name + ", apiVersion: v1, kind: Secret, " + lines + "template: \"metadata: {name: '{{ .metadata.name }}-" + suffix + "'}\"}"
	}
	named := func(t *testing.T, ns, name string) (head, tail string) {
		head, tail = around(t, fill(widgetConfig, ns, name))
		return head, "\n" + replaceOnce(t, tail, "  hash:", "  downstreamName: {annotation: op.example.com/of}\n  hash:")
	}
	t.Run("one that is never changed", spaced(func(t *testing.T, ns, name string) {
		head, tail := named(t, ns, name)
		when := "when: \"!has(self.spec.data)\", updatePolicy: CreateOnly, "
		r := start(t, testkit.Config(t), head+down("one", when, "x")+tail).ready()
		applyReady(t, ns, "a", "{}")
		<-time.After(time.Minute)
		r.become("start", head+down("two", when, "x")+tail).ready()
		<-time.After(5 * time.Minute)
		testkit.Apply(t, ns, widget("a", "{data: {off: 'yes'}}"))
		waitGone(t, secretKind, ns, "a-x")
	}))
	t.Run("two of one name", spaced(func(t *testing.T, ns, name string) {
		head, tail := named(t, ns, name)
		two := down("two", "", "two")
		r := start(t, testkit.Config(t), head+down("one", "", "x")+two+tail).ready()
		applyReady(t, ns, "a", "{}")
		testkit.Patch(t, secretKind, ns, "a-x", "somebody", `{"metadata":{"finalizers":["example.com/held"]}}`)
		r = r.become("start", head+down("one", "", "y")+two+tail).ready()
		<-time.After(2 * time.Minute)
		r.become("start", head+two+tail).ready()
		<-time.After(5 * time.Minute)
		testkit.Apply(t, ns, widget("a", "{name: foo}"))
		testkit.Eventually(t, patience, func() (bool, string) {
			up := testkit.Get(t, widgets, ns, "a")
			seen, _, _ := unstructured.NestedInt64(up.Object, "status", "observedGeneration")
			return seen == up.GetGeneration() && len(downstreamsOf(up)) == 3, fmt.Sprint(up.Object["status"])
		})
	}))
}
