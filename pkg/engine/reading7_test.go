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
				fault = faults.Answer(403, func(r *http.Request) bool {
					return testkit.On("DELETE", "secrets")(r) && strings.HasSuffix(r.URL.Path, "s2")
				})
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

// What deletionPolicy keeps since the config has changed is lost with its upstream that is deleted in the foreground: where its update is
// refused, where guard holds, and in a session that only deletes.
func TestReading7KeptInForeground(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name  string
		first func(conf string) string
		later func(conf string) string
	}{
		{"update refused", func(conf string) string {
			return strings.Replace(conf, "      data: {{ .spec.data }}", "      immutable: true\n      data: {key: one}", 1) + "guard: {maxDeleted: 100%}\n"
		}, func(conf string) string { return strings.Replace(conf, "key: one", "key: two", 1) }},
		{"only deletes", func(conf string) string { return conf + "guard: {maxDeleted: 100%}\n" },
			func(conf string) string {
				return strings.Replace(conf, "data: {{ .spec.data }}", "data: {{ .spec.data | nofunction }}", 1)
			}},
		{"guard holds", func(conf string) string { return conf + "guard: {maxDeleted: 100%}\n" },
			func(conf string) string {
				return strings.Replace(conf, "guard: {maxDeleted: 100%}", "guard: {maxChanged: 0%}", 1)
			}},
	} {
		t.Run(row.name, bubbled(func(t *testing.T) {
			ns, name := testkit.Namespace(t), testkit.Unique(t)
			conf := row.first(fill(widgetConfig, ns, name))
			r := start(t, testkit.Config(t), conf).ready()
			testkit.Apply(t, ns, widget("a", `{data: {key: value}}`))
			waitCondition(t, widgets, ns, "a", "Ready", "True")
			before := testkit.Get(t, configMaps, ns, "a")
			r.halt()
			conf = with(row.later(conf), "deletionPolicy: Orphan")
			r = start(t, testkit.Config(t), conf)
			<-time.After(2 * time.Minute)
			s, why, m := condition(testkit.Get(t, widgets, ns, "a"), "Ready")
			t.Log(s, why, m, testkit.Get(t, widgets, ns, "a").GetFinalizers(), len(testkit.Get(t, configMaps, ns, "a").GetOwnerReferences()))
			r.halt()
			foreground := metav1.DeletePropagationForeground
			if err := testkit.Dynamic(t).Resource(widgets).Namespace(ns).Delete(t.Context(), "a", metav1.DeleteOptions{PropagationPolicy: &foreground}); err != nil {
				t.Fatal(err)
			}
			<-time.After(time.Minute)
			if cm := testkit.Find(t, configMaps, ns, "a"); cm == nil || cm.GetUID() != before.GetUID() || cm.GetDeletionTimestamp() != nil {
				t.Error("what deletionPolicy keeps was deleted")
			}
		}))
	}
}

// A renamed Secret is a loss that guard holds; one that comes after another new downstream is not held, and its value is lost silently.
func TestReading7LossBehindAfter(t *testing.T) {
	t.Parallel()
	for _, after := range []bool{false, true} {
		t.Run(fmt.Sprint("after ", after), spaced(func(t *testing.T, ns, name string) {
			conf := generatedConfig(t, ns, name) + "guard: {maxDeleted: 0%, minimum: 0}\n"
			r := start(t, testkit.Config(t), conf).ready()
			testkit.Apply(t, ns, widget("a", "{name: s1, data: {of: one}}"))
			one := secretText(t, ns, "s1", "password", anyText)
			waitCondition(t, widgets, ns, "a", "Ready", "True")
			r.halt()
			later := strings.Replace(strings.Replace(conf, "name: config", "name: login", 1), "name: {{ .spec.name | default .metadata.name }}", "name: s2", 1)
			if after {
				later = strings.Replace(with(later, "after: [{name: first, until: Created}]"), "conventions:\n",
					"  - name: first\n    apiVersion: v1\n    kind: ConfigMap\n    template: |\n      metadata: {name: first}\nconventions:\n", 1)
			}
			start(t, testkit.Config(t), later)
			<-time.After(2 * time.Minute)
			s, why, m := condition(testkit.Get(t, widgets, ns, "a"), "Ready")
			t.Log(s, why, m)
			if u := testkit.Find(t, secretKind, ns, "s2"); u != nil {
				t.Errorf("guard has not held the loss; kept: %v", secretText(t, ns, "s2", "password", anyText) == one)
			}
		}))
	}
}

// An item of forEach takes the place of another downstream, which moves in the same edit, with its values.
func TestReading7ItemTakesPlace(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		conf := with(strings.NewReplacer("kind: ConfigMap", "kind: Secret", "      data:", "      stringData:",
			`"downstreams.worker.map(n, n)"`, `"self.spec.workers.map(w, w.name)"`).Replace(fill(poolConfig, ns, name)), generatedLine)
		admin := "  - name: admin\n    apiVersion: v1\n    kind: Secret\n    template: |\n      metadata: {name: {{ .metadata.annotations.admin }}}\n      stringData: {of: admin}\n    " + generatedLine + "\n"
		conf = replaceOnce(t, conf, "conventions:\n", admin+"conventions:\n")
		start(t, testkit.Config(t), conf).ready()
		up := func(admin string, workers ...string) string {
			return strings.Replace(pool("a", workers...), "metadata: {name: a}", "metadata: {name: a, annotations: {admin: "+admin+"}}", 1)
		}
		testkit.Apply(t, ns, up("a-one", "two=x"))
		one := secretText(t, ns, "a-one", "password", anyText)
		two := secretText(t, ns, "a-two", "password", anyText)
		<-time.After(time.Minute)
		testkit.Apply(t, ns, up("a-admin", "two=x", "one=x"))
		<-time.After(2 * time.Minute)
		if have := secretText(t, ns, "a-admin", "password", anyText); have != one {
			t.Errorf("the value of admin is lost; worker one has it: %v", secretText(t, ns, "a-one", "password", anyText) == one)
		}
		if secretText(t, ns, "a-two", "password", anyText) != two {
			t.Errorf("the value of worker two has changed")
		}
	})
}

// A Secret that is deleted while its upstream is paused, or invalid, is made anew with other values later, and nothing says so.
func TestReading7LossWhilePaused(t *testing.T) {
	t.Parallel()
	for _, row := range []string{"at work", "paused", "invalid"} {
		t.Run(row, spaced(func(t *testing.T, ns, name string) {
			conf := strings.Replace(generatedConfig(t, ns, name), "events: None", "events: All", 1) + "validate: [{rule: \"self.spec.?data.?bad.orValue('') != 'yes'\", message: bad}]\n"
			start(t, testkit.Config(t), conf).ready()
			testkit.Apply(t, ns, widget("a", "{name: s1, data: {of: one}}"))
			one := secretText(t, ns, "s1", "password", anyText)
			waitCondition(t, widgets, ns, "a", "Ready", "True")
			pause := func(value string) {
				testkit.Patch(t, widgets, ns, "a", "somebody", `{"metadata":{"annotations":{"`+name+`.example.com/paused":`+value+`}}}`)
			}
			switch row {
			case "paused":
				pause(`"true"`)
			case "invalid":
				testkit.Apply(t, ns, widget("a", `{name: s1, data: {of: one, bad: "yes"}}`))
			}
			<-time.After(time.Minute)
			testkit.Delete(t, secretKind, ns, "s1")
			<-time.After(time.Minute)
			switch row {
			case "paused":
				pause("null")
			case "invalid":
				testkit.Apply(t, ns, widget("a", `{name: s1, data: {of: one}}`))
			}
			secretText(t, ns, "s1", "password", not(one))
			waitEvent(t, ns, "a", "NewRandomValue", "a new random value")
		}))
	}
}
