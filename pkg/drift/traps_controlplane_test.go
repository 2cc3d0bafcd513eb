//go:build controlplane

package drift_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
)

// TestServerCanonical: why the canonical form has no stringData, which is owned instead of data if it is applied as it
// is, and no nulls in maps, but those in lists.
func TestServerCanonical(t *testing.T) {
	ns := testkit.Namespace(t)
	given := parse(t, `{apiVersion: v1, kind: Secret, metadata: {name: raw}, stringData: {a: "1", b: "2"}}`)
	raw := apply(t, ns, manager, given)
	if live(t, plain, raw).P == drift.Desired(given, plain) {
		t.Error("stringData comes back, which no API server did before: the conversion may go")
	}
	given["metadata"].(map[string]any)["name"] = "canonical"
	desired := formOf(t, given)
	u := apply(t, ns, manager, desired)
	if live(t, plain, u).P != drift.Desired(desired, plain) {
		t.Error("the canonical form differs from what was applied")
	}
	edited := merge(t, ns, "kubectl-edit", u, `{"data":{"a":"eA=="}}`)
	changed := drift.Changed(desired, edited, plain)
	if paths(changed) != ".data.a by kubectl-edit" || changed[0].Want != drift.Masked || changed[0].Have != drift.Masked {
		t.Errorf("changed %v", changed)
	}
	delete(desired["data"].(map[string]any), "b")
	less := apply(t, ns, manager, desired)
	if _, ok, _ := unstructured.NestedString(less.Object, "data", "b"); ok {
		t.Error("a removed key stays")
	}

	null := parse(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: null}}`)
	if _, err := tryApply(t, ns, manager, null); err == nil {
		u := apply(t, ns, manager, null)
		t.Logf("a null on a typed field is taken: %v", u.Object["data"])
	}
	list := formOf(t, parse(t, `{apiVersion: drift.example.com/v1, kind: Free, metadata: {name: a}, spec: {list: [a, null, b]}}`))
	u = apply(t, ns, manager, list)
	if live(t, plain, u).P != drift.Desired(list, plain) {
		t.Errorf("a null in a list comes back otherwise: %v", u.Object["spec"])
	}
	typed := formOf(t, parse(t, `{apiVersion: drift.example.com/v1, kind: Typed, metadata: {name: a}, spec: {set: [a, null]}}`))
	if _, err := tryApply(t, ns, manager, typed); err == nil {
		t.Error("a null in a list of strings is taken")
	}
}

// TestServerInitial: an initial field is not part of P, whoever owns it, and Live.Initial says who does.
func TestServerInitial(t *testing.T) {
	ns := testkit.Namespace(t)
	at := fieldpath.MustParse(".spec.replicas")
	v := &drift.View{Manager: manager, Initial: []fieldpath.Path{at}}
	deployment := func(replicas string) map[string]any {
		return formOf(t, parse(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {`+replicas+` selector: {matchLabels: {a: b}},
 template: {metadata: {labels: {a: b}}, spec: {containers: [{name: app, image: i}]}}}}`))
	}
	desired := deployment("replicas: 3,")
	u := apply(t, ns, manager, desired)
	check := func(step string, u *unstructured.Unstructured, want drift.InitialField) {
		t.Helper()
		l := live(t, v, u)
		if l.P != drift.Desired(desired, v) {
			t.Errorf("%s: P differs", step)
		}
		if diff := cmp.Diff(want, l.Initial[0]); diff != "" {
			t.Errorf("%s:\n%s", step, diff)
		}
	}
	check("at creation", u, drift.InitialField{Ours: true, Present: true, Value: int64(3)})
	merge(t, ns, "autoscaler", u, `{"spec":{"replicas":7}}`, "scale")
	scaled := get(t, ns, u)
	check("after scaling", scaled, drift.InitialField{Others: true, Present: true, Value: int64(7)})
	check("after an apply without it", apply(t, ns, manager, fieldpath.Without(desired, v.Initial)),
		drift.InitialField{Others: true, Present: true, Value: int64(7)})

	alone := deployment("replicas: 3,")
	alone["metadata"].(map[string]any)["name"] = "alone"
	apply(t, ns, manager, alone)
	reset := apply(t, ns, manager, fieldpath.Without(alone, v.Initial))
	if n, _, _ := unstructured.NestedInt64(reset.Object, "spec", "replicas"); n != 1 {
		t.Errorf("leaving a field out that we own alone gives %d replicas, want a reset to 1", n)
	}
}
