package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/survey"
)

var (
	deployments     = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	namespaces      = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	networkPolicies = schema.GroupVersionResource{Group: "networking.k8s.io", Version: "v1", Resource: "networkpolicies"}
)

// downstreamsOf returns the identifiers that the status names, by downstream.
func downstreamsOf(u *unstructured.Unstructured) map[string]map[string]any {
	list, _, _ := unstructured.NestedSlice(u.Object, "status", "downstreams")
	out := map[string]map[string]any{}
	for _, item := range list {
		m, _ := item.(map[string]any)
		name, _ := m["name"].(string)
		out[name] = m
	}
	return out
}

// isReady reports whether Ready is True, of whatever generation.
func isReady(u *obj) bool { status, _, _ := condition(u, "Ready"); return status == "True" }

const namespaceConfig = `
apiVersion: corollary.dev/v1alpha1
kind: Operator
metadata: {name: NAME}
watch: {apiVersion: v1, kind: Namespace, labelSelector: {matchLabels: {NAME.example.com/deny: "yes"}}}
downstreams:
  - name: policy
    apiVersion: networking.k8s.io/v1
    kind: NetworkPolicy
    template: |
      metadata: {name: default-deny, namespace: {{ .metadata.name }}}
      spec: {podSelector: {}, policyTypes: [Ingress, Egress]}
conventions:
  fieldManager: NAME
  labels: {NAME.example.com/managed: "yes"}
  hash: {label: NAME.example.com/hash}
  owner: {reference: true}
status: {enabled: false}
events: None
retry: {minDelay: 1s, maxDelay: 10s}
`

// A namespace that loses its label while nobody watches may have been left out by a changed selector: what exists is
// left over, and plan says so.
func TestNamespaceUpstream(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		conf := fill(namespaceConfig, ns, name)
		r, counter := startCounted(t, conf)
		deny := func(value string) {
			testkit.Patch(t, namespaces, "", ns, "somebody", `{"metadata":{"labels":{"`+name+`.example.com/deny":`+value+`}}}`)
		}
		made := func() {
			t.Helper()
			testkit.Eventually(t, patience, func() (bool, string) {
				return testkit.Find(t, networkPolicies, ns, "default-deny") != nil, "no NetworkPolicy"
			})
		}
		deny(`"yes"`)
		made()
		r.halt()

		counter.Reset()
		r = start(t, counter.Wrap(testkit.Config(t)), conf).ready()
		atMostWrites(t, counter, 0, "a restart in sync")
		// What was found in sync is known to be ours, so that what someone adds to it does not disown it.
		testkit.Patch(t, networkPolicies, ns, "default-deny", "somebody", `{"spec":{"ingress":[{}]}}`)
		testkit.Patch(t, networkPolicies, ns, "default-deny", "somebody", `{"spec":{"policyTypes":["Ingress"]}}`)
		waitField(t, networkPolicies, ns, "default-deny", []any{"Ingress", "Egress"}, "spec", "policyTypes")
		deny("null")
		waitGone(t, networkPolicies, ns, "default-deny")

		deny(`"yes"`)
		made()
		r.halt()
		deny("null")
		surveyAll(t, testkit.Config(t), survey.Options{}, conf).expect(t, ns, "leftover default-deny")
		counter.Reset()
		start(t, counter.Wrap(testkit.Config(t)), conf).ready()
		atMostWrites(t, counter, 0, "what is left over")
		mustExist(t, networkPolicies, ns, "default-deny", "it is left over")
	})
}

// elsewhere lets the Widget say in which of two namespaces its ConfigMap goes.
func elsewhere(conf, other, own string) string {
	return strings.NewReplacer(
		"        name: {{ .spec.name | default .metadata.name }}\n", "        name: {{ .metadata.name }}\n        namespace: {{ .spec.namespace }}\n",
		"    # downstream\n", "    targetNamespaces: {from: List, names: ["+other+", "+own+"]}\n").Replace(conf)
}

func TestUpstreamWithoutStatusSubresource(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		_, counter := startCounted(t, strings.Replace(fill(widgetConfig, ns, name), "kind: Widget", "kind: Plain", 1))
		testkit.Apply(t, ns, object("Plain", "a", `{data: {key: value}}`))
		waitData(t, ns, "a", "key", "value")
		waitThat(t, plains, ns, "a", isReady)
		settle(t, counter)
		testkit.Patch(t, plains, ns, "a", "somebody", `{"metadata":{"labels":{"touched":"yes"}}}`)
		atMostWrites(t, counter, 2, "a status in the main resource must not chase its own generation")
	})
}

const copyConfig = `
apiVersion: corollary.dev/v1alpha1
kind: Operator
metadata: {name: NAME}
watch: {apiVersion: v1, kind: ConfigMap, namespaces: [NS]}
downstreams:
  - name: copy
    apiVersion: v1
    kind: ConfigMap
    when: "'NAME.example.com/copy' in self.metadata.?labels.orValue({})"
    template: |
      metadata:
        name: {{ printf "%s-copy" .metadata.name }}
        labels: {{ .metadata.labels }}
      data: {{ .data }}
conventions:
  fieldManager: NAME
  labels: {NAME.example.com/managed: "yes"}
  hash: {annotation: NAME.example.com/hash}
  owner: {reference: true}
status: {enabled: false}
events: None
`

// The copy bears the label that makes a ConfigMap be copied, and is not copied itself, also if it loses its hash.
func TestSameKind(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		_, counter := startCounted(t, fill(copyConfig, ns, name))
		testkit.Apply(t, ns, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {`+name+`.example.com/copy: "yes"}}, data: {key: value}}`)
		waitData(t, ns, "a-copy", "key", "value")
		quiet(t, counter)
		mustBeAbsent(t, configMaps, ns, "a-copy-copy", "the copy was copied")
		testkit.Patch(t, configMaps, ns, "a", "somebody", `{"data":{"key":"changed"}}`)
		waitData(t, ns, "a-copy", "key", "changed")
		for range 5 {
			testkit.Patch(t, configMaps, ns, "a-copy", "somebody", `{"metadata":{"annotations":{"`+name+`.example.com/hash":null}}}`)
			waitThat(t, configMaps, ns, "a-copy", func(u *obj) bool { return u.GetAnnotations()[name+".example.com/hash"] != "" })
		}
		mustBeAbsent(t, configMaps, ns, "a-copy-copy", "the copy was copied")
	})
}

// A downstream that gets another kind leaves its object behind, and has it again with the kind, with or without a name on
// it. The object of the other kind stays then.
func TestKindChangedAndBack(t *testing.T) {
	t.Parallel()
	for _, named := range []string{"", "  downstreamName: {annotation: NAME.example.com/downstream}\n"} {
		for _, reload := range []bool{false, true} {
			t.Run(fmt.Sprint(named != "", reload), spaced(func(t *testing.T, ns, name string) {
				maps := strings.Replace(fill(widgetConfig, ns, name), "  finalizer:", strings.ReplaceAll(named, "NAME", name)+"  finalizer:", 1)
				secrets := strings.NewReplacer("kind: ConfigMap", "kind: Secret", "      data: {{ .spec.data }}", "      stringData: {{ .spec.data }}").Replace(maps)
				r := start(t, testkit.Config(t), maps).ready()
				change := func(conf string) {
					if !reload {
						r = r.restart(nil, conf)
						return
					}
					r.changeTo(name, conf)
				}
				applyReady(t, ns, "a", `{data: {key: one}}`)
				before := waitData(t, ns, "a", "key", "one")
				change(secrets)
				secretText(t, ns, "a", "key", is("one"))
				waitCondition(t, widgets, ns, "a", "Ready", "True")
				change(maps)
				testkit.Apply(t, ns, widget("a", `{data: {key: two}}`))
				waitData(t, ns, "a", "key", "two")
				waitCondition(t, widgets, ns, "a", "Ready", "True")
				if after := testkit.Get(t, configMaps, ns, "a"); after.GetUID() != before.GetUID() {
					t.Error("it was made again")
				}
				secretText(t, ns, "a", "key", is("one"))
			}))
		}
	}
}

// The objects of a list have their items again, too, with another name as well: their values are carried over.
func TestItemsKindChangedAndBack(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		secrets := poolOfSecrets(ns, name)
		maps := strings.NewReplacer("kind: Secret", "kind: ConfigMap", "stringData:", "data:", generatedLine, "").Replace(secrets)
		r := start(t, testkit.Config(t), secrets).ready()
		testkit.Apply(t, ns, pool("a", "one=x", "two=x"))
		one, two := secretText(t, ns, "a-one", "password", anyText), secretText(t, ns, "a-two", "password", anyText)
		waitCondition(t, pools, ns, "a", "Ready", "True")
		r = r.restart(nil, maps)
		waitData(t, ns, "a-two", "value", "x")
		waitCondition(t, pools, ns, "a", "Ready", "True")
		r = r.restart(nil, replaceOnce(t, secrets, "-{{ item.name }}", "-{{ item.name }}2"))
		secretText(t, ns, "a-one2", "password", is(one))
		secretText(t, ns, "a-two2", "password", is(two))
		waitGone(t, secretKind, ns, "a-one")
		waitGone(t, secretKind, ns, "a-two")
		r.halt()
	})
}
