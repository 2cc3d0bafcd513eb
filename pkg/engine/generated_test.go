package engine_test

import (
	"encoding/base64"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/internal/bubble"
	"github.com/corollary-dev/corollary/internal/testkit"
)

var secretKind = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}

const generatedLine = "generated: [{path: .data.password}, {path: .stringData.pin, length: 6, charset: numeric}]"

// generatedConfig is widgetConfig with a Secret that has generated values beside the upstream's data.
func generatedConfig(t *testing.T, ns, name string, lines ...string) string {
	t.Helper()
	conf := strings.Replace(fill(widgetConfig, ns, name), "kind: ConfigMap", "kind: Secret", 1)
	conf = strings.Replace(conf, "      data: {{ .spec.data }}", "      stringData: {{ .spec.data | default (dict) }}", 1)
	return with(conf, append(lines, generatedLine)...)
}

// secretText waits until a Secret has a value under a key that want accepts, and returns it.
func secretText(t *testing.T, ns, name, key string, want func(string) bool) string {
	t.Helper()
	var have string
	testkit.Eventually(t, patience, func() (bool, string) {
		u := testkit.Find(t, secretKind, ns, name)
		if u == nil {
			return false, "Secret " + name + " does not exist"
		}
		data, _ := u.Object["data"].(map[string]any)
		encoded, _ := data[key].(string)
		plain, err := base64.StdEncoding.DecodeString(encoded)
		have = string(plain)
		return err == nil && have != "" && want(have), "data." + key + " is " + have
	})
	return have
}

func anyText(string) bool { return true }

func is(want string) func(string) bool { return func(have string) bool { return have == want } }

func not(other string) func(string) bool { return func(have string) bool { return have != other } }

// generatedOf are the generated values of a Secret.
func generatedOf(t *testing.T, ns, name string) (password, pin string) {
	t.Helper()
	return secretText(t, ns, name, "password", anyText), secretText(t, ns, name, "pin", anyText)
}

// generatedIs waits until a Secret has these generated values.
func generatedIs(t *testing.T, ns, name, password, pin string) {
	t.Helper()
	secretText(t, ns, name, "password", is(password))
	secretText(t, ns, name, "pin", is(pin))
}

// applyKey applies a Widget with a key, and waits until its Secret has it.
func applyKey(t *testing.T, ns, name, value string) {
	t.Helper()
	testkit.Apply(t, ns, widget(name, `{data: {key: `+value+`}}`))
	secretText(t, ns, name, "key", is(value))
}

// setKey sets a key of the Secret as someone else; "" removes it.
func setKey(t *testing.T, ns, name, key, value string) {
	t.Helper()
	encoded := "null"
	if value != "" {
		encoded = `"` + base64.StdEncoding.EncodeToString([]byte(value)) + `"`
	}
	testkit.Patch(t, secretKind, ns, name, "somebody", `{"data":{"`+key+`":`+encoded+`}}`)
}

// A new Secret costs what any new object costs, and nothing afterwards. A key that is removed is made again by one
// write, and so is a Secret that is deleted: where the last value is lost, an event says so.
func TestGeneratedRequests(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		conf := strings.Replace(generatedConfig(t, ns, name), "events: None", "events: Warnings", 1)
		r, counter := startCounted(t, conf)
		settle(t, counter)
		applyReady(t, ns, "a", `{}`)
		exactly(t, counter, 2, "a new object")
		password, pin := generatedOf(t, ns, "a")
		for value, form := range map[string]string{password: `^[A-Za-z0-9]{32}$`, pin: `^[0-9]{6}$`} {
			if !regexp.MustCompile(form).MatchString(value) {
				t.Errorf("a value has not the form %s", form)
			}
		}
		r.restart(counter, conf)
		waitObserved(t, name, "InSync", 1)
		atMostWrites(t, counter, 0, "a restart")
		generatedIs(t, ns, "a", password, pin)

		counter.Reset()
		setKey(t, ns, "a", "password", "")
		second := secretText(t, ns, "a", "password", not(password))
		exactly(t, counter, 1, "a removed key", func(r testkit.Request) bool { return r.Mutating() && r.Resource == "secrets" })
		secretText(t, ns, "a", "pin", is(pin))
		testkit.Delete(t, secretKind, ns, "a")
		secretText(t, ns, "a", "password", func(have string) bool { return have != password && have != second })
		waitEvent(t, ns, "a", "NewRandomValue", "a new random value for data.password, data.pin: Secret "+ns+"/a, which had the last one, is gone, or lacks marks or labels of conventions")
	})
}

// Policies decide about a removed key as about any other drift.
func TestGeneratedPolicies(t *testing.T) {
	t.Parallel()
	for line, state := range map[string]string{"drift: {policy: Report}": "Drifted", "drift: {policy: Ignore}": "InSync", "updatePolicy: CreateOnly": "InSync"} {
		t.Run(line, spaced(func(t *testing.T, ns, name string) {
			_, counter := startCounted(t, generatedConfig(t, ns, name, line))
			applyReady(t, ns, "a", `{data: {key: value}}`)
			settle(t, counter)
			setKey(t, ns, "a", "password", "")
			waitObserved(t, name, state, 1)
			quiet(t, counter)
			if data, _ := testkit.Get(t, secretKind, ns, "a").Object["data"].(map[string]any); data["password"] != nil {
				t.Error("the key was made anew")
			}
		}))
	}
}

// An adopted Secret keeps what it has, whoever its fields are taken from.
func TestGeneratedAdopted(t *testing.T) {
	t.Parallel()
	for _, lines := range [][]string{
		{"adoptionPolicy: IfUnowned"},
		{"adoptionPolicy: IfUnowned", "adopt: {fieldManagers: [somebody]}"},
	} {
		t.Run(lines[len(lines)-1], spaced(func(t *testing.T, ns, name string) {
			testkit.Apply(t, ns, `{apiVersion: v1, kind: Secret, metadata: {name: a}}`)
			setKey(t, ns, "a", "password", "earlier")
			start(t, testkit.Config(t), generatedConfig(t, ns, name, lines...)).ready()
			applyKey(t, ns, "a", "value")
			secretText(t, ns, "a", "password", is("earlier"))
			secretText(t, ns, "a", "pin", anyText)
			applyKey(t, ns, "a", "second")
			secretText(t, ns, "a", "password", is("earlier"))
		}))
	}
}

// Each object of a list has values of its own.
func TestGeneratedForEach(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		conf := poolOfSecrets(ns, name)
		r := start(t, testkit.Config(t), conf).ready()
		testkit.Apply(t, ns, pool("a", "one=x", "two=x"))
		one, two := secretText(t, ns, "a-one", "password", anyText), secretText(t, ns, "a-two", "password", anyText)
		if one == two {
			t.Error("two objects have one password")
		}
		testkit.Apply(t, ns, pool("a", "three=x", "one=y"))
		secretText(t, ns, "a-one", "value", is("y"))
		secretText(t, ns, "a-one", "password", is(one))
		three := secretText(t, ns, "a-three", "password", anyText)
		waitGone(t, secretKind, ns, "a-two")
		waitCondition(t, pools, ns, "a", "Ready", "True")
		setKey(t, ns, "a-three", "password", "rotated")
		r.restart(nil, strings.Replace(conf, ".data.password", ".data.pw", 1))
		secretText(t, ns, "a-one", "pw", is(one))
		secretText(t, ns, "a-three", "pw", func(have string) bool { return have == "rotated" && have != three })
	})
}

// A template that sets the key itself is reported, without the value.
func TestGeneratedSetByTemplate(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		start(t, testkit.Config(t), generatedConfig(t, ns, name)).ready()
		testkit.Apply(t, ns, widget("a", `{data: {password: swordfish}}`))
		eventuallyCondition(t, ns, "a", "False", "RenderFailed", "data.password, which is in generated")
	})
}

// No log, event, status or metric has a part of what was generated.
func TestGeneratedIsNotReported(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		log := startLogged(t, strings.Replace(generatedConfig(t, ns, name), "events: None", "events: All", 1))
		testkit.Apply(t, ns, widget("a", `{data: {key: value}}`))
		first := secretText(t, ns, "a", "password", anyText)
		setKey(t, ns, "a", "password", "")
		second := secretText(t, ns, "a", "password", not(first))
		setKey(t, ns, "a", "key", "tampered")
		secretText(t, ns, "a", "key", is("value"))
		applyKey(t, ns, "a", "other")
		waitEvent(t, ns, "a", "Repaired", "")
		for _, value := range []string{first, second} {
			noneLeaked(t, "a", []byte(value), map[string]any{"the upstream": testkit.Get(t, widgets, ns, "a").Object,
				"events": testkit.List(t, events, ns, ""), "the log": log(), "metrics": gathered(t)}, testkit.LeakedGenerated)
		}
	})
}

// An object that is recreated keeps its values, also those that it had when it was adopted: only a Secret that someone
// deletes gets new ones.
func TestGeneratedSurvivesRecreate(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		conf := generatedConfig(t, ns, name, "updatePolicy: Recreate", "adoptionPolicy: IfUnowned")
		conf = strings.Replace(conf, "      stringData:", "      type: {{ if eq .spec.data.key \"value\" }}Opaque{{ else }}example.com/other{{ end }}\n      stringData:", 1)
		start(t, testkit.Config(t), conf).ready()
		testkit.Apply(t, ns, `{apiVersion: v1, kind: Secret, metadata: {name: b}, data: {password: b2xkAP8=}}`) // no text in UTF-8
		for _, up := range []string{"a", "b"} {
			applyKey(t, ns, up, "value")
			password, pin := generatedOf(t, ns, up)
			before := testkit.Get(t, secretKind, ns, up).GetUID()
			testkit.Apply(t, ns, widget(up, `{data: {key: other}}`))
			waitThat(t, secretKind, ns, up, func(u *obj) bool { return u.GetUID() != before })
			generatedIs(t, ns, up, password, pin)
			if up == "b" && password != "old\x00\xff" {
				t.Errorf("the value that was adopted is %q", password)
			}
			waitCondition(t, widgets, ns, up, "Ready", "True")
			testkit.Delete(t, secretKind, ns, up)
			secretText(t, ns, up, "password", not(password))
		}
	})
}

// A Secret that is renamed, moved, or adopted has the value that the one before had, also if something holds the old
// one.
func TestGeneratedCarriedOver(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		conf := generatedConfig(t, ns, name, "adoptionPolicy: IfUnowned")
		r := start(t, testkit.Config(t), conf).ready()
		testkit.Apply(t, ns, widget("a", `{name: first, data: {key: value}}`))
		password, pin := generatedOf(t, ns, "first")
		hold := func(object string) {
			testkit.Update(t, secretKind, ns, object, func(u *unstructured.Unstructured) { u.SetFinalizers([]string{"test.example.com/hold"}) })
		}
		hold("first")
		for _, object := range []string{"second", "third"} { // the first one stays, terminating
			testkit.Apply(t, ns, widget("a", `{name: `+object+`, data: {key: value}}`))
			generatedIs(t, ns, object, password, pin)
		}
		waitGone(t, secretKind, ns, "second")
		hold("third")
		testkit.Delete(t, secretKind, ns, "third") // it can be read as long as it is held
		waitThat(t, secretKind, ns, "third", func(u *obj) bool { return u.GetDeletionTimestamp() != nil })
		r.restart(nil, conf)
		eventuallyCondition(t, ns, "a", "False", "Waiting", "is being deleted")
		before := testkit.Get(t, secretKind, ns, "third").GetUID()
		testkit.Update(t, secretKind, ns, "third", func(u *unstructured.Unstructured) { u.SetFinalizers(nil) })
		waitThat(t, secretKind, ns, "third", func(u *obj) bool { return u.GetUID() != before })
		generatedIs(t, ns, "third", password, pin)
		testkit.Apply(t, ns, `{apiVersion: v1, kind: Secret, metadata: {name: fourth}}`) // an adopted one that lacks the keys
		testkit.Apply(t, ns, widget("a", `{name: fourth, data: {key: value}}`))
		generatedIs(t, ns, "fourth", password, pin)
		testkit.Update(t, secretKind, ns, "first", func(u *unstructured.Unstructured) { u.SetFinalizers(nil) })
		for _, object := range []string{"first", "third"} {
			waitGone(t, secretKind, ns, object)
		}
	})
}

// TestGeneratedKeyRenamed: a key that is renamed in generated keeps its value, whoever owns it by then, and though the
// upstream was edited before that is carried out, the Secret renamed, or made again since it is immutable.
func TestGeneratedKeyRenamed(t *testing.T) {
	t.Parallel()
	const immutable = "      immutable: true\n      stringData:"
	for _, row := range []struct {
		reason, lines string
		rotated       bool   // by another manager
		edited        bool   // while no process runs
		manager       string // what the name of the field manager gets
		to            string // the name of the Secret after the edit
		template      string // instead of stringData
	}{
		{reason: "nothing else", to: "a"},
		{reason: "policy Report is about drift", lines: "drift: {policy: Report}", to: "a"},
		{reason: "rotated", rotated: true, to: "a"},
		{reason: "edited", edited: true, to: "a"},
		{reason: "rotated and edited", rotated: true, edited: true, to: "a"},
		{reason: "by another field manager", edited: true, manager: "-next", to: "a"},
		{reason: "renamed", rotated: true, edited: true, to: "b"},
		{reason: "immutable", lines: "updatePolicy: Recreate", to: "a", template: immutable},
		{reason: "immutable and edited", lines: "updatePolicy: Recreate", edited: true, to: "a", template: immutable},
	} {
		t.Run(row.reason, spaced(func(t *testing.T, ns, name string) {
			lines := []string{}
			if row.lines != "" {
				lines = append(lines, row.lines)
			}
			conf := generatedConfig(t, ns, name, lines...)
			if row.template != "" {
				conf = replaceOnce(t, conf, "      stringData:", row.template)
			}
			r := start(t, testkit.Config(t), strings.Replace(conf, "events: None", "events: Warnings", 1)).ready()
			testkit.Apply(t, ns, widget("a", "{name: a, data: {key: value, gone: x}}"))
			password, pin := generatedOf(t, ns, "a")
			waitCondition(t, widgets, ns, "a", "Ready", "True")
			if row.rotated {
				password = "rotated"
				setKey(t, ns, "a", "password", password)
				setKey(t, ns, "a", "note", "of others")
				waitCondition(t, widgets, ns, "a", "Ready", "True")
			}
			r.halt()
			if row.edited {
				testkit.Apply(t, ns, widget("a", "{name: "+row.to+", data: {key: other}}"))
			}
			start(t, testkit.Config(t), strings.NewReplacer(".data.password}", ".data.pw, length: 8}", "events: None", "events: Warnings",
				"fieldManager: "+name, "fieldManager: "+name+row.manager).Replace(conf)).ready()
			secretText(t, ns, row.to, "pw", is(password))
			secretText(t, ns, row.to, "pin", is(pin))
			waitCondition(t, widgets, ns, "a", "Ready", "True")
			data, _ := testkit.Get(t, secretKind, ns, row.to).Object["data"].(map[string]any)
			if stays := (row.rotated || row.manager != "") && row.to == "a"; (data["password"] != nil) != stays {
				t.Errorf("the old key stays: %t, want %t", !stays, stays)
			}
			for _, e := range testkit.List(t, events, ns, "") {
				t.Errorf("an event: %v", e.Object["note"])
			}
			if row.rotated && row.to == "a" { // the old key does not come back when the new one is rotated
				setKey(t, ns, "a", "pw", "")
				secretText(t, ns, "a", "pw", not(password))
			}
		}))
	}
}

// TestGeneratedKeyOfImmutable: an immutable Secret in which nothing but a generated key is new is made again, with the
// values of others.
func TestGeneratedKeyOfImmutable(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		conf := generatedConfig(t, ns, name, "updatePolicy: Recreate", "adoptionPolicy: IfUnowned")
		conf = replaceOnce(t, conf, "      stringData:", "      immutable: true\n      stringData:")
		testkit.Apply(t, ns, `{apiVersion: v1, kind: Secret, metadata: {name: a}}`)
		setKey(t, ns, "a", "password", "earlier")
		r := startWidget(t, ns, conf)
		pin := secretText(t, ns, "a", "pin", anyText)
		conf = strings.Replace(conf, ".data.password}", ".data.pw}", 1)
		r = r.restart(nil, conf)
		secretText(t, ns, "a", "pw", is("earlier"))
		waitCondition(t, widgets, ns, "a", "Ready", "True")
		r.restart(nil, strings.Replace(conf, "{path: .data.pw}", "{path: .data.pw}, {path: .data.more}", 1))
		secretText(t, ns, "a", "more", anyText)
		secretText(t, ns, "a", "pw", is("earlier"))
		secretText(t, ns, "a", "pin", is(pin))
	})
}

// TestGeneratedKeyUnclear: where two keys take the place of one that others own, neither has its value, and an event
// says so.
func TestGeneratedKeyUnclear(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		conf := strings.Replace(generatedConfig(t, ns, name), "events: None", "events: Warnings", 1)
		r := startWidget(t, ns, conf)
		_, pin := generatedOf(t, ns, "a")
		setKey(t, ns, "a", "password", "rotated")
		r.restart(nil, strings.Replace(conf, "{path: .data.password}", "{path: .data.pw}, {path: .data.root}", 1))
		for _, key := range []string{"pw", "root"} {
			secretText(t, ns, "a", key, not("rotated"))
		}
		secretText(t, ns, "a", "password", is("rotated"))
		secretText(t, ns, "a", "pin", is(pin))
		waitEvent(t, ns, "a", "NewRandomValue", "a new random value for data.pw, data.root, data.pin: which of them replaces data.password cannot be told")
	})
}

// TestValuesStayWithTheirDownstream: if the names of two Secrets of one upstream shift or are swapped, by an edit or by
// the config, over a restart too, each value stays with its downstream, or nothing changes hands. What is left over is
// not taken either.
func TestValuesStayWithTheirDownstream(t *testing.T) {
	t.Parallel()
	const second = "  - name: second\n    apiVersion: v1\n    kind: Secret\n    template: |\n      metadata: {name: {{ .spec.data.second }}}\n      stringData: {of: second}\n"
	for _, row := range []struct {
		reason      string
		one, second string // the names after the edit; before, they are s1 and s2
		drop        bool   // the second downstream leaves the config
		conflict    bool
		unrecorded  bool // only the process knows which Secret is whose
	}{
		{"each takes the next name", "s2", "s3", false, false, false},
		{"each takes the next name, unrecorded", "s2", "s3", false, false, true},
		{"swapped", "s2", "s1", false, true, false},
		{"swapped, unrecorded", "s2", "s1", false, true, true},
		{"what is left over has the name", "s2", "none", true, true, false},
	} {
		for _, restart := range []bool{false, true} {
			if restart && row.unrecorded {
				continue
			}
			t.Run(fmt.Sprint(row.reason, restart), spaced(func(t *testing.T, ns, name string) {
				alone := strings.Replace(generatedConfig(t, ns, name), "      stringData: {{ .spec.data | default (dict) }}", "      stringData: {of: one}", 1)
				if row.unrecorded {
					alone = replaceOnce(t, alone, "  downstreams: .status.downstreams\n", "")
				}
				conf := replaceOnce(t, alone, "conventions:\n", second+"    "+generatedLine+"\nconventions:\n")
				r := start(t, testkit.Config(t), conf).ready()
				testkit.Apply(t, ns, widget("a", "{name: s1, data: {second: s2}}"))
				one, two := secretText(t, ns, "s1", "password", anyText), secretText(t, ns, "s2", "password", anyText)
				waitCondition(t, widgets, ns, "a", "Ready", "True")
				if restart {
					r.halt()
				}
				if row.drop {
					conf = alone
				}
				r.write("a.yaml", conf)
				if !restart {
					r.reload()
					waitThat(t, widgets, ns, "a", func(u *obj) bool { return strings.Contains(fmt.Sprint(u.Object["status"]), "Leftover") == row.drop })
				}
				testkit.Apply(t, ns, widget("a", fmt.Sprintf("{name: %s, data: {second: %s}}", row.one, row.second)))
				if restart {
					start(t, testkit.Config(t), conf).ready()
				}
				is := func(want string) func(string) bool { return func(have string) bool { return have == want } }
				if row.conflict {
					eventuallyCondition(t, ns, "a", "False", "Conflict", "s2 exists and is of downstream second")
					secretText(t, ns, "s1", "password", is(one))
					secretText(t, ns, "s2", "password", is(two))
					secretText(t, ns, "s2", "of", is("second"))
					return
				}
				waitCondition(t, widgets, ns, "a", "Ready", "True")
				waitGone(t, secretKind, ns, "s1")
				for key, values := range map[string][2]string{"password": {one, two}, "of": {"one", "second"}} {
					secretText(t, ns, "s2", key, is(values[0]))
					secretText(t, ns, "s3", key, is(values[1]))
				}
			}))
		}
	}
}

// TestNamesAreNotSwapped: upstreams that take over each other's names are in Conflict and keep their objects, over a
// restart too. They swap their names by a free one in between; their values go with them.
func TestNamesAreNotSwapped(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		conf := generatedConfig(t, ns, name)
		r := start(t, testkit.Config(t), conf).ready()
		some := func(value string) bool { return len(value) > 8 }
		of := func(owner string) func(string) bool { return func(have string) bool { return have == owner } }
		for i, object := range []string{"one", "two"} {
			testkit.Apply(t, ns, widget(fmt.Sprintf("u%d", i), fmt.Sprintf("{name: %s, data: {of: u%d}}", object, i)))
		}
		one, two := secretText(t, ns, "one", "password", some), secretText(t, ns, "two", "password", some)
		for i, object := range []string{"two", "one"} {
			testkit.Apply(t, ns, widget(fmt.Sprintf("u%d", i), fmt.Sprintf("{name: %s, data: {of: u%d}}", object, i)))
		}
		for i := range 2 {
			eventuallyCondition(t, ns, fmt.Sprint("u", i), "False", "Conflict", "belongs to")
		}
		r.halt()
		_, counter := startCounted(t, conf)
		bubble.Quiet(t, counter)
		secretText(t, ns, "one", "password", of(one))
		secretText(t, ns, "two", "password", of(two))
		testkit.Apply(t, ns, widget("u0", "{name: free, data: {of: u0}}"))
		secretText(t, ns, "one", "of", of("u1"))
		testkit.Apply(t, ns, widget("u0", "{name: two, data: {of: u0}}"))
		secretText(t, ns, "two", "of", of("u0"))
		secretText(t, ns, "one", "password", of(two))
		secretText(t, ns, "two", "password", of(one))
	})
}
