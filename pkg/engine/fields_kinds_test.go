package engine_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// What the objects of Kubernetes' own controllers and of other teams are given, and given up again: exactly the fields of the template.
func TestFieldsOfKinds(t *testing.T) {
	t.Parallel()
	core := func(resource string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Version: "v1", Resource: resource}
	}
	for kind, row := range map[string]struct {
		gvr              schema.GroupVersionResource
		theirs, template string
		path             []string
		with             any // what is at path with both
		edit             string
		after            any // then, once somebody has edited the object
	}{
		"Pod": {core("pods"), "spec: {containers: [{name: a, image: b}]}\nmetadata: {name: NAME, labels: {app: theirs}}",
			"metadata: {name: NAME, labels: {team: red}}", []string{"metadata", "labels"},
			map[string]any{"app": "theirs", "team": "red"}, `{"metadata":{"labels":{"app":"b","x":"y"}}}`, map[string]any{"app": "b", "team": "red", "x": "y"}},
		"Namespace": {core("namespaces"), "metadata: {name: NAME, labels: {a: b}}", "metadata: {name: NAME, labels: {team: red}, annotations: {contact: us}}",
			[]string{"metadata", "labels"},
			map[string]any{"a": "b", "kubernetes.io/metadata.name": "NAME", "team": "red"}, `{"metadata":{"labels":{"a":"c"}}}`,
			map[string]any{"a": "c", "kubernetes.io/metadata.name": "NAME", "team": "red"}},
		"ServiceAccount": {core("serviceaccounts"), "metadata: {name: NAME, labels: {a: theirs}}", "metadata: {name: NAME}\nimagePullSecrets: [{name: ours}]",
			[]string{"imagePullSecrets"}, []any{map[string]any{"name": "ours"}}, `{"metadata":{"labels":{"a":"c"}}}`, []any{map[string]any{"name": "ours"}}},
		"ConfigMap": {core("configmaps"), "metadata: {name: NAME}\ndata: {theirs: '1'}", "metadata: {name: NAME}\ndata: {ours: '2'}", []string{"data"},
			map[string]any{"theirs": "1", "ours": "2"}, `{"data":{"theirs":"3","x":"y"}}`,
			map[string]any{"theirs": "3", "ours": "2", "x": "y"}},
	} {
		t.Run(kind, spaced(func(t *testing.T, ns, name string) {
			at := ns
			if kind == "Namespace" {
				at = ""
			}
			with := func(text string) string { return strings.ReplaceAll(text, "NAME", name) }
			waitValue := func(want any) {
				t.Helper()
				want = replaceIn(want, "NAME", name)
				testkit.Eventually(t, patience, func() (bool, string) {
					have, _, _ := unstructured.NestedFieldNoCopy(testkit.Get(t, row.gvr, at, name).Object, row.path...)
					return cmp.Equal(have, want), cmp.Diff(have, want)
				})
			}
			testkit.Apply(t, at, "apiVersion: v1\nkind: "+kind+"\n"+with(row.theirs))
			testkit.Apply(t, ns, widget("w", "{}"))
			head, tail, _ := strings.Cut(contributing(ns, name, ""), "    template: |\n")
			_, tail, _ = strings.Cut(tail, "    # downstream\n")
			conf := strings.Replace(head, "kind: ConfigMap", "kind: "+kind, 1) + "    template: |\n      " +
				strings.ReplaceAll(with(row.template), "\n", "\n      ") + "\n" + tail
			_, counter := startCounted(t, conf)
			waitValue(row.with)
			eventuallyCondition(t, ns, "w", "True", "", "")
			testkit.Patch(t, row.gvr, at, name, "somebody", row.edit)
			waitValue(row.after)
			settle(t, counter)
			testkit.Patch(t, row.gvr, at, name, "somebody", `{"metadata":{"annotations":{"theirs":"x"}}}`)
			atMostRequests(t, counter, 0, "what others do")
			deleteAndWait(t, widgets, ns, "w")
			u := testkit.Get(t, row.gvr, at, name)
			if annotations := u.GetAnnotations(); len(annotations) != 1 || annotations["theirs"] != "x" {
				t.Errorf("it has the annotations %v", annotations)
			}
			if text := jsonOf(u); strings.Contains(text, `"ours"`) || strings.Contains(text, `"red"`) || !strings.Contains(text, "theirs") {
				t.Errorf("what is left is %s", text)
			}
		}))
	}
}

// replaceIn replaces text in the values of a map.
func replaceIn(value any, old, text string) any {
	m, ok := value.(map[string]any)
	if !ok {
		return value
	}
	out := map[string]any{}
	for k, v := range m {
		if s, isText := v.(string); isText {
			v = strings.ReplaceAll(s, old, text)
		}
		out[k] = v
	}
	return out
}
