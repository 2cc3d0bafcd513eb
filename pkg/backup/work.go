package backup

import (
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/backup/contents"
)

// hold keeps a Job or a new Pod from being run until its status says what has run already.
func (p *pass) hold(u *unstructured.Unstructured) {
	switch u.GroupVersionKind().GroupKind() {
	case contents.Jobs:
		_ = unstructured.SetNestedField(u.Object, true, "spec", "suspend")
	case contents.Pods:
		gates, _, _ := unstructured.NestedSlice(u.Object, "spec", "schedulingGates")
		ours := map[string]any{"name": p.FieldManager}
		if !slices.ContainsFunc(gates, func(g any) bool { return reflect.DeepEqual(g, any(ours)) }) {
			_ = unstructured.SetNestedSlice(u.Object, append(gates, ours), "spec", "schedulingGates")
		}
	}
}

// release undoes hold.
func release(u *unstructured.Unstructured) []operation {
	switch u.GroupVersionKind().GroupKind() {
	case contents.Jobs:
		suspended, _, _ := unstructured.NestedBool(u.Object, "spec", "suspend")
		return []operation{{"add", "/spec/suspend", suspended}}
	case contents.Pods:
		gates, _, _ := unstructured.NestedSlice(u.Object, "spec", "schedulingGates")
		return []operation{{"add", "/spec/schedulingGates", gates}}
	}
	return nil
}

// tellsWork reports whether the status of an object is worth restoring: that of a Pod that has not finished is the
// node's to say.
func tellsWork(u *unstructured.Unstructured) bool {
	phase, _, _ := unstructured.NestedString(u.Object, "status", "phase")
	return u.GroupVersionKind().GroupKind() != contents.Pods || phase == "Succeeded" || phase == "Failed"
}

// noteOlder notes whether the archived status is older than that of an object that exists.
func (p *pass) noteOlder(u, existing *unstructured.Unstructured, unfinished bool) {
	status, _, _ := unstructured.NestedMap(existing.Object, "status")
	p.older[u.GetUID()] = len(status) > 0 && (!unfinished || existing.GetUID() == u.GetUID())
}
