package explain

import (
	"context"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/compile"
	"github.com/corollary-dev/corollary/pkg/reconcile/preview"
)

// holder says who owns an object that is in the way of a downstream: who writes it, and what owns it. Whoever is to
// runUntilIdle the conflict has to talk to them. One that cannot be read is passed over; that it is there has been
// said.
func (e *explanation) holder(ctx context.Context, p *compile.Pipeline, c preview.Change, line func(string, ...any)) {
	if c.State != operator.StateConflict || c.Target.Name == "" || c.Index < 0 {
		return
	}
	object, err := apply.New(e.Client, "why").Get(ctx, apply.Target{GVR: p.Downstreams[c.Index].Kind.GVR,
		Namespace: c.Target.Namespace,
		Name:      c.Target.Name})
	if err != nil {
		return
	}
	for _, text := range holdersOf(object) {
		line("the existing object %s", text)
	}
}

// holdersOf names the owners and writers of an object, in words that follow "the object there".
func holdersOf(object *unstructured.Unstructured) (texts []string) {
	if writers := writersOf(object.GetManagedFields()); len(writers) > 0 {
		texts = append(texts, "was written by "+strings.Join(writers, ", "))
	}
	for _, owner := range object.GetOwnerReferences() {
		texts = append(texts, "is owned by "+owner.Kind+" "+owner.Name+" (uid "+string(owner.UID)+")")
	}
	return texts
}

// writersOf names the managers of an object's own fields, the last one to write first.
func writersOf(entries []metav1.ManagedFieldsEntry) []string {
	entries = slices.DeleteFunc(slices.Clone(entries), func(e metav1.ManagedFieldsEntry) bool {
		return e.Subresource != "" ||
			e.Manager == ""
	})
	slices.SortStableFunc(entries, func(a, b metav1.ManagedFieldsEntry) int {
		if a.Time == nil || b.Time == nil {
			return 0
		}
		return b.Time.Compare(a.Time.Time)
	})
	var names []string
	for _, e := range entries {
		if !slices.Contains(names, e.Manager) {
			names = append(names, e.Manager)
		}
	}
	return names
}
