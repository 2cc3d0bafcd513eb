package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

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

// What the config has forgotten stays, and is reported, also after its upstream was not selected for a while: it is not
// taken for what another downstream of its kind has left behind.
func TestForgottenOutlivesASelection(t *testing.T) {
	t.Parallel()
	for _, row := range []string{"config", "tenant"} {
		for _, at := range []string{"reload", "start"} {
			t.Run(row+" "+at, spaced(func(t *testing.T, ns, name string) {
				conf := siblingsConfig(t, ns, name, "")
				if row == "tenant" {
					conf = replaceOnce(t, conf, "namespaces: ["+ns+"]", "namespaces: ["+ns+"], labelSelector: {matchLabels: {chosen: 'yes'}}")
				}
				r := start(t, testkit.Config(t), conf).ready()
				label := func(value string) {
					testkit.Patch(t, widgets, ns, "a", "somebody", `{"metadata":{"labels":{"chosen":`+value+`}}}`)
				}
				testkit.Apply(t, ns, widget("a", `{name: s1, data: {second: s2}}`))
				label(`"yes"`)
				two := secretText(t, ns, "s2", "password", anyText)
				<-time.After(time.Minute)
				conf = replaceOnce(t, conf, secondSecret+"    "+generatedLine+"\n", "")
				r = r.become(at, conf)
				status := func(want string) {
					t.Helper()
					waitThat(t, widgets, ns, "a", func(u *obj) bool {
						list, _ := u.Object["status"].(map[string]any)["downstreams"].([]any)
						return slices.ContainsFunc(list, func(item any) bool {
							return item.(map[string]any)["objectName"] == "s2" && item.(map[string]any)["state"] == want
						})
					})
				}
				status("Leftover")
				if row == "tenant" {
					label("null")
					waitGone(t, secretKind, ns, "s1")
					status("Leftover")
					label(`"yes"`)
				} else {
					r = r.become(at, replaceOnce(t, conf, "namespaces: ["+ns+"]", "namespaces: ["+ns+"], labelSelector: {matchLabels: {chosen: 'no'}}"))
					waitCondition(t, widgets, ns, "a", "Ready", "Unknown")
					status("Leftover")
					r.become(at, conf)
				}
				waitCondition(t, widgets, ns, "a", "Ready", "True")
				<-time.After(time.Hour)
				keepsValue(t, ns, "s2", two)
				status("Leftover")
			}))
		}
	}
}

// A paused upstream is left alone until it is deleted, also if it is not selected any more.
func TestPausedIsLeftAloneUnselected(t *testing.T) {
	t.Parallel()
	for _, row := range []string{"label", "match condition", "namespace"} {
		for _, at := range []string{"running", "start", "resumed"} {
			t.Run(row+" "+at, spaced(func(t *testing.T, ns, name string) {
				selector := map[string]string{"label": "labelSelector: {matchLabels: {chosen: 'yes'}}",
					"match condition": "matchConditions: [{name: chosen, expression: \"self.metadata.?labels.?chosen.orValue('') == 'yes'\"}]",
					"namespace":       "namespaceSelector: {matchLabels: {chosen: 'yes'}}"}[row]
				conf := replaceOnce(t, generatedConfig(t, ns, name), "namespaces: ["+ns+"]", "namespaces: ["+ns+"], "+selector)
				label := func(value string) {
					gvr, in, of := widgets, ns, "a"
					if row == "namespace" {
						gvr, in, of = namespaces, "", ns
					}
					testkit.Patch(t, gvr, in, of, "somebody", `{"metadata":{"labels":{"chosen":`+value+`}}}`)
				}
				pause := func(value string) {
					testkit.Patch(t, widgets, ns, "a", "somebody", fill(`{"metadata":{"annotations":{"NAME.example.com/paused":`+value+`}}}`, ns, name))
				}
				r := start(t, testkit.Config(t), conf).ready()
				testkit.Apply(t, ns, widget("a", `{data: {of: one}}`))
				label(`"yes"`)
				value := secretText(t, ns, "a", "password", anyText)
				pause(`"true"`)
				<-time.After(time.Minute)
				label("null")
				<-time.After(time.Hour)
				if at == "start" {
					r.restart(nil, conf)
					<-time.After(time.Hour)
				}
				if at == "resumed" {
					pause("null")
					<-time.After(time.Hour)
				}
				keepsValue(t, ns, "a", value)
				waitCondition(t, widgets, ns, "a", "Ready", "Unknown")
				label(`"yes"`)
				<-time.After(time.Minute)
				pause("null")
				waitCondition(t, widgets, ns, "a", "Ready", "True")
				keepsValue(t, ns, "a", value)
			}))
		}
	}
}
