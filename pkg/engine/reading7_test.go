package engine_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/internal/testkit"
)

const reading7Second = "  - name: second\n    apiVersion: v1\n    kind: Secret\n    template: |\n      metadata: {name: {{ .spec.data.second }}}\n      stringData: {of: second}\n"

func reading7Config(t *testing.T, ns, name, more string) string {
	alone := strings.Replace(generatedConfig(t, ns, name), "      stringData: {{ .spec.data | default (dict) }}", "      stringData: {of: one}", 1)
	return replaceOnce(t, alone, "conventions:\n", reading7Second+"    "+generatedLine+"\n"+more+"conventions:\n")
}

// A downstream that becomes wanted takes the place of another one, which moves in the same edit, with its values.
func TestReading7NewDownstreamTakesPlace(t *testing.T) {
	inMemory(t, func(t *testing.T) {
		ns, name := testkit.Namespace(t), testkit.Unique(t)
		conf := with(reading7Config(t, ns, name, ""), `when: "has(self.spec.name)"`)
		start(t, testkit.Config(t), conf).ready()
		testkit.Apply(t, ns, widget("a", "{data: {second: s2}}"))
		two := secretText(t, ns, "s2", "password", anyText)
		waitCondition(t, widgets, ns, "a", "Ready", "True")
		testkit.Apply(t, ns, widget("a", "{name: s2, data: {second: s3}}"))
		<-time.After(time.Minute)
		s, r, m := condition(testkit.Get(t, widgets, ns, "a"), "Ready")
		t.Log(s, r, m)
		if have := secretText(t, ns, "s3", "password", anyText); have != two {
			t.Errorf("the value of downstream second is lost")
		}
		if have := secretText(t, ns, "s2", "password", anyText); have == two {
			t.Errorf("downstream config has the value of downstream second")
		}
	})
}

// The old object of second stays after the status records the new one: it is taken by the other downstream, whose own value is lost.
func TestReading7RecordOfSiblingIsLost(t *testing.T) {
	t.Parallel()
	for _, row := range []string{"deletion refused", "still used", "nothing"} {
		t.Run(row, bubbled(func(t *testing.T) {
			ns, name := testkit.Namespace(t), testkit.Unique(t)
			third := "  - name: third\n    apiVersion: v1\n    kind: ConfigMap\n    after: [{name: second, until: Created}]\n    template: |\n      metadata: {name: third}\n      data: {k: {{ .spec.data.third }}}\n"
			conf := reading7Config(t, ns, name, third)
			faults := testkit.NewFaults()
			start(t, faults.Wrap(testkit.Config(t)), conf).ready()
			testkit.Apply(t, ns, widget("a", `{name: s1, data: {second: s2, third: "yes"}}`))
			one, two := secretText(t, ns, "s1", "password", anyText), secretText(t, ns, "s2", "password", anyText)
			waitCondition(t, widgets, ns, "a", "Ready", "True")
			var fault *testkit.Fault
			spec := `{name: s2, data: {second: s3, third: "yes"}}`
			switch row {
			case "deletion refused":
				fault = faults.Answer(403, func(r *http.Request) bool { return testkit.On("DELETE", "secrets")(r) && strings.HasSuffix(r.URL.Path, "s2") })
			case "still used":
				spec = `{name: s2, data: {second: s3}}`
			}
			testkit.Apply(t, ns, widget("a", spec))
			<-time.After(2 * time.Minute)
			if fault != nil {
				t.Log("refused deletions:", fault.Hits())
				fault.Off()
			}
			s, r, m := condition(testkit.Get(t, widgets, ns, "a"), "Ready")
			t.Log(s, r, m)
			testkit.Apply(t, ns, widget("a", `{name: s2, data: {second: s3, third: "yes"}}`))
			<-time.After(2 * time.Minute)
			s, r, m = condition(testkit.Get(t, widgets, ns, "a"), "Ready")
			t.Log(s, r, m)
			if have := secretText(t, ns, "s3", "password", anyText); have != two {
				t.Errorf("the value of downstream second is lost")
			}
			if have := secretText(t, ns, "s2", "password", anyText); have != one {
				t.Errorf("the value of downstream config is lost; it has that of second: %v", have == two)
			}
		}))
	}
}

// Another client keeps restoring the owner reference of what is kept: the writes are to be spaced out, as all others.
func TestReading7MarkOwnerIsNotSpaced(t *testing.T) {
	t.Parallel()
	for _, paused := range []bool{true, false} {
		t.Run(fmt.Sprint("paused ", paused), bubbled(func(t *testing.T) {
			ns, name := testkit.Namespace(t), testkit.Unique(t)
			conf := fill(widgetConfig, ns, name) + "guard: {maxDeleted: 100%}\n"
			r := start(t, testkit.Config(t), conf).ready()
			up := testkit.Apply(t, ns, widget("a", `{data: {key: value}}`))
			waitData(t, ns, "a", "key", "value")
			waitCondition(t, widgets, ns, "a", "Ready", "True")
			r.halt()
			conf = with(conf, "deletionPolicy: Orphan")
			if paused {
				testkit.Patch(t, widgets, ns, "a", "somebody", fill(`{"metadata":{"annotations":{"NAME.example.com/paused":"true"}}}`, ns, name))
			}
			counter := testkit.NewCounter()
			var restored atomic.Int32
			uid := up.GetUID()
			testkit.NewMirror(t, configMaps, func(o *unstructured.Unstructured) {
				if o.GetName() != "a" || len(o.GetOwnerReferences()) > 0 || restored.Load() > 200 {
					return
				}
				restored.Add(1)
				body := fmt.Sprintf(`{"metadata":{"ownerReferences":[{"apiVersion":"test.example.com/v1","kind":"Widget","name":"a","uid":"%s"}]}}`, uid)
				_, _ = testkit.Dynamic(t).Resource(configMaps).Namespace(ns).Patch(t.Context(), "a", types.MergePatchType, []byte(body), metav1.PatchOptions{FieldManager: "other"})
			})
			start(t, counter.Wrap(testkit.Config(t)), conf).ready()
			<-time.After(time.Minute)
			n := counter.Mutating(func(r testkit.Request) bool { return r.Resource == "configmaps" })
			t.Log("writes in a minute:", n, "restored:", restored.Load())
			if n > 40 {
				t.Errorf("%d writes in a minute", n)
			}
		}))
	}
}

// A session that only deletes writes with mode Observe, too; and the upstream hangs at its deletion.
func TestReading7ObserveWritesFinalizer(t *testing.T) {
	inMemory(t, func(t *testing.T) {
		ns, name := testkit.Namespace(t), testkit.Unique(t)
		conf := fill(widgetConfig, ns, name) + "guard: {maxDeleted: 100%}\n"
		r := start(t, testkit.Config(t), conf).ready()
		testkit.Apply(t, ns, widget("a", `{data: {key: value}}`))
		waitData(t, ns, "a", "key", "value")
		waitCondition(t, widgets, ns, "a", "Ready", "True")
		r.halt()
		conf = strings.Replace(with(conf, "deletionPolicy: Orphan"), "data: {{ .spec.data }}", "data: {{ .spec.data | nofunction }}", 1) + "mode: Observe\n"
		counter := testkit.NewCounter()
		start(t, counter.Wrap(testkit.Config(t)), conf)
		<-time.After(time.Minute)
		for _, w := range counter.Requests(testkit.Request.Mutating) {
			t.Log(w.Key())
		}
		if f := testkit.Get(t, widgets, ns, "a").GetFinalizers(); len(f) > 0 {
			t.Errorf("mode Observe has added %v", f)
		}
		if err := testkit.Dynamic(t).Resource(widgets).Namespace(ns).Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		<-time.After(5 * time.Minute)
		if u := testkit.Find(t, widgets, ns, "a"); u != nil {
			t.Errorf("its deletion hangs")
		}
	})
}
