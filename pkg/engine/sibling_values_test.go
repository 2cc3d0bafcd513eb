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

const secondSecret = "  - name: second\n    apiVersion: v1\n    kind: Secret\n    template: |\n      metadata: {name: {{ .spec.data.second }}}\n      stringData: {of: second}\n"

func siblingsConfig(t *testing.T, ns, name, more string) string {
	alone := strings.Replace(generatedConfig(t, ns, name), "      stringData: {{ .spec.data | default (dict) }}", "      stringData: {of: one}", 1)
	return replaceOnce(t, alone, "conventions:\n", secondSecret+"    "+generatedLine+"\n"+more+"conventions:\n")
}

// poolOfSecrets is poolConfig with a Secret with a random value for each worker.
func poolOfSecrets(ns, name string) string {
	return with(strings.NewReplacer("kind: ConfigMap", "kind: Secret", "      data:", "      stringData:",
		`"downstreams.worker.map(n, n)"`, `"self.spec.workers.map(w, w.name)"`).Replace(fill(poolConfig, ns, name)), generatedLine)
}

// keepsValue checks that a Secret has the value that was made before.
func keepsValue(t *testing.T, ns, secret, value string) {
	t.Helper()
	if have := secretText(t, ns, secret, "password", anyText); have != value {
		t.Errorf("Secret %s has another value: the one from before is lost", secret)
	}
}

// What another downstream has left behind, and cannot be deleted yet, is still its own: nobody takes it over with its
// values.
func TestValuesOfWhatIsStillThere(t *testing.T) {
	t.Parallel()
	for _, row := range []string{"deletion refused", "still used", "nothing"} {
		t.Run(row, spaced(func(t *testing.T, ns, name string) {
			third := "  - name: third\n    apiVersion: v1\n    kind: ConfigMap\n    after: [{name: second, until: Created}]\n    template: |\n      metadata: {name: third}\n      data: {k: {{ .spec.data.third }}}\n"
			conf := siblingsConfig(t, ns, name, third)
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
				fault.Off()
			}
			testkit.Apply(t, ns, widget("a", `{name: s2, data: {second: s3, third: "yes"}}`))
			<-time.After(2 * time.Minute)
			keepsValue(t, ns, "s3", two)
			keepsValue(t, ns, "s2", one)
		}))
	}
}

// A value goes back to a Secret that gets its old name again, while what had that name still was. The Secret that has
// the only copy of the value is kept where nothing says any more whose it is.
func TestLastCopyOfAValueIsKept(t *testing.T) {
	t.Parallel()
	for kept, unrecorded := range map[string]string{"s1": "", "q1": "  downstreams: .status.downstreams\n"} {
		t.Run(kept, spaced(func(t *testing.T, ns, name string) {
			conf := strings.Replace(siblingsConfig(t, ns, name, ""), unrecorded, "", 1)
			r := start(t, testkit.Config(t), conf).ready()
			testkit.Apply(t, ns, widget("a", "{name: s1, data: {second: s2}}"))
			value := secretText(t, ns, "s1", "password", anyText)
			testkit.Patch(t, secretKind, ns, "s1", "somebody", `{"metadata":{"finalizers":["example.com/held"]}}`)
			for _, to := range []string{"q1", "s1"} { // and back, where the old one still is
				testkit.Apply(t, ns, widget("a", "{name: "+to+", data: {second: s2}}"))
				<-time.After(time.Minute)
			}
			r.halt()
			testkit.Patch(t, secretKind, ns, "s1", "somebody", `{"metadata":{"finalizers":null}}`)
			start(t, testkit.Config(t), conf).ready()
			<-time.After(10 * time.Minute)
			keepsValue(t, ns, kept, value)
		}))
	}
}

// A client that keeps restoring the owner reference of what is kept is answered at growing intervals.
func TestOwnerMarksAreSpaced(t *testing.T) {
	t.Parallel()
	for _, paused := range []bool{true, false} {
		t.Run(fmt.Sprint("paused ", paused), spaced(func(t *testing.T, ns, name string) {
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
			if n > 40 {
				t.Errorf("%d writes in a minute", n)
			}
		}))
	}
}

// With mode Observe, a session that only deletes adds no finalizer, which nobody would remove.
func TestObserveAddsNoFinalizer(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		conf := fill(widgetConfig, ns, name) + "guard: {maxDeleted: 100%}\n"
		r := startWidget(t, ns, conf)
		r.halt()
		conf = strings.Replace(with(conf, "deletionPolicy: Orphan"), "data: {{ .spec.data }}", "data: {{ .spec.data | nofunction }}", 1) + "mode: Observe\n"
		start(t, testkit.Config(t), conf)
		<-time.After(time.Minute)
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

// A value that is about to be lost is held by guard, also where its Secret still waits for another downstream.
func TestLossBehindAfterIsHeld(t *testing.T) {
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
			if u := testkit.Find(t, secretKind, ns, "s2"); u != nil {
				t.Errorf("guard has not held the loss; kept: %v", secretText(t, ns, "s2", "password", anyText) == one)
			}
		}))
	}
}

// A Secret that is deleted while its upstream is left alone gets other values later, and an event says so.
func TestLossOfWhatIsLeftAloneIsReported(t *testing.T) {
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

// The config renames all items of forEach: each takes over the values of the one that was of the same item, also if the
// upstream is edited before that is done.
func TestRenamedItemsKeepTheirValues(t *testing.T) {
	t.Parallel()
	for _, row := range []string{"unedited", "edited", "paused and edited", "invalid and edited", "item edited"} {
		t.Run(row, spaced(func(t *testing.T, ns, name string) {
			conf := replaceOnce(t, poolOfSecrets(ns, name), "downstreams:\n", "validate: [{rule: \"self.spec.workers.all(w, w.value != 'bad')\", message: wrong}]\ndownstreams:\n")
			r := start(t, testkit.Config(t), conf).ready()
			testkit.Apply(t, ns, pool("a", "one=x", "two=y"))
			one, two := secretText(t, ns, "a-one", "password", anyText), secretText(t, ns, "a-two", "password", anyText)
			pause := func(value string) {
				testkit.Patch(t, pools, ns, "a", "somebody", fill(`{"metadata":{"annotations":{"NAME.example.com/paused":`+value+`}}}`, ns, name))
			}
			<-time.After(time.Minute)
			switch row {
			case "paused and edited":
				pause(`"true"`)
			case "invalid and edited":
				testkit.Apply(t, ns, pool("a", "one=bad", "two=y"))
			}
			<-time.After(time.Minute)
			renamed := strings.Replace(conf, `metadata: {name: "{{ .metadata.name }}-`, `metadata: {name: "{{ .metadata.name }}-login-`, 1)
			if row == "unedited" || row == "edited" || row == "item edited" {
				r.halt()
			} else {
				r.become("reload", renamed)
				<-time.After(time.Minute)
			}
			switch row {
			case "edited", "paused and edited", "invalid and edited":
				testkit.Apply(t, ns, pool("a", "one=x", "two=y", "three=z"))
			case "item edited":
				testkit.Apply(t, ns, pool("a", "one=other", "two=y"))
			}
			switch row {
			case "paused and edited":
				pause("null")
			case "invalid and edited":
			default:
				start(t, testkit.Config(t), renamed).ready()
			}
			secretText(t, ns, "a-login-one", "password", is(one))
			secretText(t, ns, "a-login-two", "password", is(two))
		}))
	}
}

// A Secret that is made again without the values of one that it replaces is counted once, at a start and at a reload.
func TestGuardCountsALostValueOnce(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		conf := poolOfSecrets(ns, name)
		conf += "guard: {maxDeleted: 0%, minimum: 0}\n"
		r := start(t, testkit.Config(t), conf).ready()
		testkit.Apply(t, ns, pool("a", "one=x", "two=y"))
		secretText(t, ns, "a-two", "password", anyText)
		<-time.After(time.Minute)
		renamed := strings.NewReplacer(`metadata: {name: "{{ .metadata.name }}-`, `metadata: {name: "{{ .metadata.name }}-login-`, `stringData: {value: "`, `stringData: {value: "new-`).Replace(conf)
		const says = "2 of 2 existing downstreams would be deleted"
		r.write("a.yaml", renamed)
		r.reload()
		testkit.Eventually(t, patience, func() (bool, string) {
			err := r.Reloaded(nil)
			return err != nil && strings.Contains(err.Error(), says), "a reload says " + text(err)
		})
		r.halt()
		r = start(t, testkit.Config(t), renamed)
		testkit.Eventually(t, patience, func() (bool, string) {
			err := r.Ready(nil)
			return err != nil && strings.Contains(err.Error(), says), "a start says " + text(err)
		})
	})
}

// Names that are passed on from one downstream to another, also together with another label of the watch: what no watch
// shows is at a target of another one.
func TestValuesMoveWithNames(t *testing.T) {
	t.Parallel()
	for _, row := range []string{"same label", "other label", "other label, paused"} {
		t.Run(row, spaced(func(t *testing.T, ns, name string) {
			conf := siblingsConfig(t, ns, name, "")
			r := start(t, testkit.Config(t), conf).ready()
			testkit.Apply(t, ns, widget("a", `{name: s1, data: {second: s2}}`))
			one, two := secretText(t, ns, "s1", "password", anyText), secretText(t, ns, "s2", "password", anyText)
			<-time.After(time.Minute)
			r.halt()
			pause := func(value string) {
				testkit.Patch(t, widgets, ns, "a", "somebody", fill(`{"metadata":{"annotations":{"NAME.example.com/paused":`+value+`}}}`, ns, name))
			}
			if row == "other label, paused" {
				pause(`"true"`)
			}
			if row != "same label" {
				conf = replaceOnce(t, conf, `managed: "yes"`, `managed: "true"`)
			}
			testkit.Apply(t, ns, widget("a", `{name: s2, data: {second: s3}}`))
			start(t, testkit.Config(t), conf).ready()
			if row == "other label, paused" {
				<-time.After(time.Minute)
				pause("null")
			}
			waitGone(t, secretKind, ns, "s1")
			secretText(t, ns, "s3", "password", anyText)
			keepsValue(t, ns, "s2", one)
			keepsValue(t, ns, "s3", two)
		}))
	}
}

// The Secrets of items stay where they are if the items exchange names, or pass them on: which of them loses its value
// is said. What an object says of its item decides nothing against its uid.
func TestItemsPassNamesOn(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name   string
		policy string
		then   []string
		kept   map[string]string // by the name of a Secret, the one that had the value before
		says   string
	}{
		{"shifted", "", []string{"one=s2", "two=s3"}, map[string]string{"s2": "s2"}, "of its item"},
		{"the first one removed", "", []string{"two=s1"}, map[string]string{"s1": "s1"}, "of its item"},
		{"swapped", "", []string{"one=s2", "two=s1"}, map[string]string{"s1": "s1", "s2": "s2"}, "of its item"},
		{"kept", "deletionPolicy: Orphan", []string{"one=s2", "two=s3"}, map[string]string{"s2": "s2"}, "of its item"},
		{"only created", "updatePolicy: CreateOnly", []string{"uno=s1", "two=s2", "one=s9"}, map[string]string{"s1": "s1", "s2": "s2"}, ""},
	} {
		t.Run(row.name, spaced(func(t *testing.T, ns, name string) {
			conf := replaceOnce(t, replaceOnce(t, poolOfSecrets(ns, name), "-{{ item.name }}", "-{{ item.value }}"), "events: None", "events: Warnings")
			start(t, testkit.Config(t), replaceOnce(t, conf, generatedLine, generatedLine+"\n    "+row.policy)).ready()
			testkit.Apply(t, ns, pool("a", "one=s1", "two=s2"))
			before := map[string]string{"s1": secretText(t, ns, "a-s1", "password", anyText), "s2": secretText(t, ns, "a-s2", "password", anyText)}
			<-time.After(time.Minute)
			testkit.Apply(t, ns, pool("a", row.then...))
			<-time.After(time.Hour)
			waitCondition(t, pools, ns, "a", "Ready", "True")
			for secret, had := range row.kept {
				keepsValue(t, ns, "a-"+secret, before[had])
			}
			if row.says != "" {
				waitEvent(t, ns, "a", "NewRandomValue", row.says)
			}
		}))
	}
}

// TestItemsBecomeOne: where a downstream loses its forEach, its one Secret has the value of the only item. Of several, it
// gets a new one, that is said, and the old ones are kept.
func TestItemsBecomeOne(t *testing.T) {
	t.Parallel()
	for items, says := range map[string]string{"one": "", "one two": "which of the replaced objects had the last one cannot be told"} {
		t.Run(items, spaced(func(t *testing.T, ns, name string) {
			conf := replaceOnce(t, poolOfSecrets(ns, name), "events: None", "events: Warnings")
			r := start(t, testkit.Config(t), conf).ready()
			testkit.Apply(t, ns, pool("a", strings.Fields(strings.ReplaceAll(items+" ", " ", "=s "))...))
			one := secretText(t, ns, "a-one", "password", anyText)
			<-time.After(time.Minute)
			_, each, _ := strings.Cut(conf, "    forEach:")
			each, _, _ = strings.Cut(each, "    template:")
			conf = replaceOnce(t, conf, "    forEach:"+each, "")
			r.reloadTo(strings.NewReplacer("{{ item.name }}", "new", "{{ item.value }}", "new").Replace(conf))
			<-time.After(time.Hour)
			if says == "" {
				waitGone(t, secretKind, ns, "a-one")
				secretText(t, ns, "a-new", "password", is(one))
				return
			}
			secretText(t, ns, "a-new", "password", not(one))
			waitEvent(t, ns, "a", "NewRandomValue", says)
			secretText(t, ns, "a-one", "password", is(one))
		}))
	}
}

// A hash that is copied from another item's Secret is drift.
func TestHashOfAnotherItem(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		start(t, testkit.Config(t), poolOfSecrets(ns, name)).ready()
		testkit.Apply(t, ns, pool("a", "one=s1", "two=s2"))
		one := secretText(t, ns, "a-one", "password", anyText)
		secretText(t, ns, "a-two", "password", anyText)
		<-time.After(time.Minute)
		hash := testkit.Get(t, secretKind, ns, "a-two").GetAnnotations()[name+".example.com/hash"]
		testkit.Patch(t, secretKind, ns, "a-one", "somebody", `{"metadata":{"annotations":{"`+name+`.example.com/hash":"`+hash+`"}}}`)
		<-time.After(time.Hour)
		keepsValue(t, ns, "a-one", one)
	})
}

// What was renamed is renamed again while the first objects cannot be deleted yet: the newest ones have the values.
func TestItemsRenamedAgainKeepTheirValues(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"reload", "start"} {
		t.Run(at, spaced(func(t *testing.T, ns, name string) {
			conf := poolOfSecrets(ns, name)
			r, faults := startFaulty(t, conf)
			testkit.Apply(t, ns, pool("a", "one=x", "two=y"))
			one, two := secretText(t, ns, "a-one", "password", anyText), secretText(t, ns, "a-two", "password", anyText)
			refusal := faults.Answer(500, testkit.On("DELETE", "secrets"))
			for _, to := range []string{"-login-", "-access-"} {
				<-time.After(time.Minute)
				renamed := strings.Replace(conf, `metadata: {name: "{{ .metadata.name }}-`, `metadata: {name: "{{ .metadata.name }}`+to, 1)
				if at == "start" {
					r.halt()
					r = start(t, faults.Wrap(testkit.Config(t)), renamed)
				} else {
					r.reloadTo(renamed)
				}
				keepsValue(t, ns, "a"+to+"one", one)
				keepsValue(t, ns, "a"+to+"two", two)
			}
			refusal.Off()
			waitGone(t, secretKind, ns, "a-one")
			waitGone(t, secretKind, ns, "a-login-two")
			keepsValue(t, ns, "a-access-one", one)
		}))
	}
}

// A second value is added while an item goes: what stays has its own value, and nothing is lost.
func TestValueAddedWhileAnItemGoes(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		conf := replaceOnce(t, poolOfSecrets(ns, name), "events: None", "events: Warnings")
		r := start(t, testkit.Config(t), conf).ready()
		testkit.Apply(t, ns, pool("a", "one=x", "two=y", "three=z"))
		two := secretText(t, ns, "a-two", "password", anyText)
		<-time.After(time.Minute)
		r.halt()
		testkit.Apply(t, ns, pool("a", "two=y", "three=z"))
		start(t, testkit.Config(t), replaceOnce(t, conf, generatedLine, strings.Replace(generatedLine, "[", "[{path: .data.token}, ", 1)))
		waitGone(t, secretKind, ns, "a-one")
		secretText(t, ns, "a-two", "token", anyText)
		keepsValue(t, ns, "a-two", two)
		<-time.After(time.Minute)
		for _, e := range testkit.List(t, events, ns, "") {
			if e.Object["reason"] == "NewRandomValue" {
				t.Errorf("an event says: %v", e.Object["note"])
			}
		}
	})
}
