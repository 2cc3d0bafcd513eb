package engine_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

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

// TestValuesLostWhileNothingCanBeDone: a downstream and its Secret are renamed at once, and the upstream is not acted on
// until later. The new Secret has new values then, and an event says so all the same.
func TestValuesLostWhileNothingCanBeDone(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, before, after string // patches of the upstream
		refused             bool
		narrowed            string // a line of watch with which the upstream is not selected
	}{
		{name: "paused", before: `{"metadata":{"annotations":{"NAME.example.com/paused":"true"}}}`, after: `{"metadata":{"annotations":null}}`},
		{name: "invalid", before: `{"spec":{"data":{"key":"bad"}}}`, after: `{"spec":{"data":{"key":"good"}}}`},
		{name: "refused", refused: true},
		{name: "not selected", narrowed: "matchConditions: [{name: none, expression: 'false'}]"},
	} {
		t.Run(row.name, spaced(func(t *testing.T, ns, name string) {
			conf := strings.Replace(generatedConfig(t, ns, name), "events: None", "events: Warnings", 1)
			conf = replaceOnce(t, conf, "conventions:\n", "validate: [{rule: \"self.spec.?data.?key.orValue('') != 'bad'\", message: bad}]\nconventions:\n")
			faults := testkit.NewFaults()
			r := start(t, faults.Wrap(testkit.Config(t)), conf).ready()
			applyReady(t, ns, "a", `{data: {key: value}}`)
			before, _ := generatedOf(t, ns, "a")
			edit := func(patch string) {
				if patch != "" {
					testkit.Patch(t, widgets, ns, "a", "somebody", fill(patch, ns, name))
				}
			}
			edit(row.before)
			if row.narrowed != "" {
				r.write("a.yaml", replaceOnce(t, conf, "namespaces: ["+ns+"]", "namespaces: ["+ns+"], "+row.narrowed))
				r.reload()
				waitCondition(t, widgets, ns, "a", "Ready", "Unknown")
			}
			fault := faults.Answer(403, func(q *http.Request) bool { return row.refused && strings.Contains(q.URL.Path, "/secrets/a-new") })
			r.write("a.yaml", replaceOnce(t, replaceOnce(t, conf, "- name: config", "- name: other"), "| default .metadata.name }}", "| default .metadata.name }}-new"))
			r.reload()
			<-time.After(time.Minute)
			fault.Off()
			edit(row.after)
			secretText(t, ns, "a-new", "password", not(before))
			secretText(t, ns, "a", "password", is(before))
			waitEvent(t, ns, "a", "NewRandomValue", "of downstream config, which the config no longer has, keeps its own")
		}))
	}
}

// A Secret is deleted to be recreated, its creation is refused, since someone has taken its room in a quota, and the
// process ends, which alone had the values: the next one says that they are lost.
func TestValuesLostWithTheProcess(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		typed := func(text string) string {
			return strings.Replace(generatedConfig(t, ns, name, "updatePolicy: Recreate")+"guard: {maxDeleted: 100%}\n",
				"      stringData:", "      type: "+text+"\n      stringData:", 1)
		}
		var full atomic.Bool
		limited := intercepted(testkit.Config(t), func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
			switch {
			case !strings.Contains(r.URL.Path, "/secrets/"):
			case r.Method == http.MethodDelete:
				full.Store(true)
			case r.Method != http.MethodGet && full.Load():
				return reply(r, http.StatusForbidden, []byte(`{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 403,
					"reason": "Forbidden", "message": "exceeded quota"}`)), nil
			}
			return next.RoundTrip(r)
		})
		r := start(t, limited, typed("Opaque")).ready()
		applyKey(t, ns, "a", "value")
		password, _ := generatedOf(t, ns, "a")
		r.reloadTo(typed("example.com/other"))
		waitGone(t, secretKind, ns, "a")
		<-time.After(time.Minute)
		r.halt()
		full.Store(false)
		logged := &logText{}
		startWith(t, testkit.Config(t), logged.to, typed("example.com/other")).ready()
		secretText(t, ns, "a", "password", not(password))
		if !strings.Contains(logged.String(), "values of a Secret are lost") {
			t.Error("nothing says so")
		}
	})
}

// A Secret whose place an existing one takes, which keeps its own values, is not deleted: nothing else may have its values.
func TestReplacedByOtherValues(t *testing.T) {
	t.Parallel()
	for name, their := range map[string][]string{"all": {"password", "pin"}, "one": {"password"}} {
		t.Run(name, spaced(func(t *testing.T, ns, name string) {
			for _, key := range append([]string{"any"}, their...) {
				testkit.Apply(t, ns, `{apiVersion: v1, kind: Secret, metadata: {name: theirs}}`)
				setKey(t, ns, "theirs", key, "earlier")
			}
			conf := generatedConfig(t, ns, name, "adoptionPolicy: IfUnowned")
			r := start(t, testkit.Config(t), conf).ready()
			applyKey(t, ns, "a", "value")
			password, pin := generatedOf(t, ns, "a")
			testkit.Apply(t, ns, widget("a", `{name: theirs, data: {key: value}}`))
			secretText(t, ns, "theirs", "key", is("value"))
			waitThat(t, secretKind, ns, "a", func(u *obj) bool { return len(u.GetAnnotations()) == 0 })
			generatedIs(t, ns, "a", password, pin)
			secretText(t, ns, "theirs", "password", is("earlier"))
			if len(their) == 1 {
				secretText(t, ns, "theirs", "pin", is(pin))
			}
			waitCondition(t, widgets, ns, "a", "Ready", "True")
			r.restart(nil, conf)
			deleteAndWait(t, widgets, ns, "a")
			generatedIs(t, ns, "a", password, pin)
		}))
	}
}

// A Secret that a change of the kind left behind has the last values of its downstream, when that has the kind again.
func TestGeneratedAfterAnotherKind(t *testing.T) {
	t.Parallel()
	for _, named := range []string{"", "  downstreamName: {annotation: NAME.example.com/downstream}\n"} {
		t.Run(fmt.Sprint(named != ""), spaced(func(t *testing.T, ns, name string) {
			say := func(conf string) string {
				return strings.Replace(conf, "  finalizer:", strings.ReplaceAll(named, "NAME", name)+"  finalizer:", 1)
			}
			secrets, maps := say(generatedConfig(t, ns, name)), say(fill(widgetConfig, ns, name))
			r := start(t, testkit.Config(t), secrets).ready()
			applyKey(t, ns, "a", "value")
			password, pin := generatedOf(t, ns, "a")
			r = r.restart(nil, maps)
			waitData(t, ns, "a", "key", "value")
			r = r.restart(nil, strings.Replace(secrets, ".metadata.name }}", ".metadata.name }}2", 1))
			generatedIs(t, ns, "a2", password, pin)
			waitCondition(t, widgets, ns, "a", "Ready", "True")
			r = r.restart(nil, secrets)
			waitGone(t, secretKind, ns, "a2")
			generatedIs(t, ns, "a", password, pin)
			r.halt()
		}))
	}
}

// TestItemsReplacedByUnlikeOnes: whether an item without a name was edited or replaced nobody can tell. The Secret that
// may have the last value is kept, and is nobody's. An item with a name, or that is a text, is replaced: its Secret goes.
func TestItemsReplacedByUnlikeOnes(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		reason, items, name string
		kept                bool
	}{
		{"fields without a name", "self.spec.workers.map(w, {'user': w.name, 'role': w.value})", "item.user", true},
		{"texts", "self.spec.workers.map(w, w.name)", "item", false},
		{"names", "self.spec.workers", "item.name", false},
	} {
		t.Run(row.reason, spaced(func(t *testing.T, ns, name string) {
			conf := strings.NewReplacer("items: self.spec.workers", `items: "`+row.items+`"`, "item.name", row.name, "item.value", row.name,
				"when: item.?enabled.orValue(true)", "", "events: None", "events: Warnings").Replace(poolOfSecrets(ns, name))
			start(t, testkit.Config(t), conf).ready()
			testkit.Apply(t, ns, pool("a", "one=x", "two=y"))
			one, two := secretText(t, ns, "a-one", "password", anyText), secretText(t, ns, "a-two", "password", anyText)
			testkit.Apply(t, ns, pool("a", "three=x", "four=y"))
			secretText(t, ns, "a-three", "password", not(one))
			secretText(t, ns, "a-four", "password", not(two))
			if !row.kept {
				waitGone(t, secretKind, ns, "a-one")
				waitGone(t, secretKind, ns, "a-two")
				return
			}
			waitEvent(t, ns, "a", "NewRandomValue", "cannot be told")
			<-time.After(time.Minute)
			secretText(t, ns, "a-one", "password", is(one))
			if left := testkit.List(t, secretKind, ns, selector(name)); len(left) != 2 {
				t.Errorf("%d Secrets are ours", len(left))
			}
		}))
	}
}

// TestItemsBeginAndEnd: a downstream gets forEach, or loses it, in the edit that also names its Secrets otherwise. Where
// nobody can tell which new Secret replaces which old one, the old ones are kept: they may have the last value.
func TestItemsBeginAndEnd(t *testing.T) {
	t.Parallel()
	const each, nameOfEach = "    forEach:\n      items: self.spec.workers\n", "{{ .metadata.name }}-{{ item.name }}"
	for _, row := range []struct {
		reason, before, after string
		first                 []string // before the change
		lost                  bool
	}{
		{"one for two items", "{{ .metadata.name }}", nameOfEach, []string{"a"}, true},
		{"two items for one", nameOfEach, "{{ .metadata.name }}", []string{"a-one", "a-two"}, true},
		{"two items for one of the same name as one of them", nameOfEach, "{{ .metadata.name }}-one", []string{"a-one", "a-two"}, false},
	} {
		t.Run(row.reason, spaced(func(t *testing.T, ns, name string) {
			conf := strings.NewReplacer("when: item.?enabled.orValue(true)", "", "events: None", "events: Warnings",
				"{{ item.value }}", "x").Replace(poolOfSecrets(ns, name))
			version := func(objectName string) string {
				text := strings.Replace(conf, nameOfEach, objectName, 1)
				if !strings.Contains(objectName, "item") {
					text = replaceOnce(t, text, each, "")
				}
				return text
			}
			r := start(t, testkit.Config(t), version(row.before)).ready()
			testkit.Apply(t, ns, pool("a", "one=x", "two=y"))
			values := map[string]string{}
			for _, secret := range row.first {
				values[secret] = secretText(t, ns, secret, "password", anyText)
			}
			r.reloadTo(version(row.after))
			if row.lost {
				waitEvent(t, ns, "a", "NewRandomValue", "cannot be told")
			}
			<-time.After(time.Minute)
			for secret, value := range values {
				keepsValue(t, ns, secret, value)
			}
		}))
	}
}
