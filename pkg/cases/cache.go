package cases

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/canonical"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/memcluster"
	"github.com/corollary-dev/corollary/pkg/offline"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/compile"
	"github.com/corollary-dev/corollary/pkg/operator/desired"
	"github.com/corollary-dev/corollary/pkg/operator/marks"
	"github.com/corollary-dev/corollary/pkg/reconcile/observe"
)

// cache reads the store of the cluster, like watches without a lag.
type cache struct {
	testCase *testCase
	pipeline *compile.Pipeline
	cluster  *memcluster.Cluster
	row      *unstructured.Unstructured   // the only one; nil if the upstreams are objects
	rows     []*unstructured.Unstructured // those of inputs
}

// stored returns the stored object of that name; nil for none.
func (c *cache) stored(ref operator.Ref) *unstructured.Unstructured {
	if c.row != nil {
		if c.row.GetName() == ref.Name {
			return c.row
		}
		return nil
	}
	for _, u := range c.cluster.Objects(c.pipeline.Upstream.GVR) {
		if u.GetNamespace() == ref.Namespace && u.GetName() == ref.Name {
			return u
		}
	}
	return nil
}

// selectedUpstream returns the stored upstream of that name, if the watch selects it; nil if not.
func (c *cache) selectedUpstream(ref operator.Ref) *unstructured.Unstructured {
	if u := c.stored(ref); u != nil && offline.Unselected(c.pipeline.Renderer, u) == "" {
		return u
	}
	return nil
}

// Excludes implements observe.Cache.
func (c *cache) Excludes(ref operator.Ref) bool {
	u := c.stored(ref)
	return u != nil && !c.pipeline.Match(u).IsMet()
}

// Upstream implements observe.Cache.
func (c *cache) Upstream(ref operator.Ref) (*unstructured.Unstructured, error) {
	u := c.selectedUpstream(ref)
	if u == nil {
		return nil, nil
	}
	u = u.DeepCopy()
	u.SetManagedFields(nil)
	return u, nil
}

// UpstreamUID implements observe.Cache.
func (c *cache) UpstreamUID(ref operator.Ref) types.UID {
	if u := c.selectedUpstream(ref); u != nil {
		return u.GetUID()
	}
	return ""
}

// HasApplied implements observe.Cache.
func (c *cache) HasApplied(ref operator.Ref, manager string) bool {
	u := c.selectedUpstream(ref)
	return u != nil && slices.ContainsFunc(u.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager == manager && e.Operation == metav1.ManagedFieldsOperationApply
	})
}

// Watches implements observe.Cache.
func (c *cache) Watches(namespace string) bool {
	list := c.pipeline.Config.Watch.Namespaces
	return len(list) == 0 || slices.Contains(list, namespace)
}

// NamespaceLabels implements observe.Cache.
func (c *cache) NamespaceLabels(string) (labels.Set, bool) { return c.testCase.namespaceLabels, true }

// objects returns the objects of downstream i, or of deletion.before, that a watch would show.
func (c *cache) objects(i int, keep func(*drift.Live) bool) []*drift.Live {
	var d *desired.Downstream
	if i != operator.BeforeIndex {
		d = c.pipeline.Downstreams[i]
	} else if c.pipeline.Before != nil {
		d = c.pipeline.Before.Object
	} else {
		return nil
	}
	var list []*drift.Live
	for _, u := range c.cluster.Objects(d.Kind.GVR) {
		if !d.Selector.AsSelector().Matches(labels.Set(u.GetLabels())) {
			continue
		}
		if live := d.View.Live(u); keep(live) {
			list = append(list, live)
		}
	}
	return list
}

// Live implements observe.Cache.
func (c *cache) Live(i int, at operator.Ref) *drift.Live {
	for _, live := range c.objects(i, func(l *drift.Live) bool {
		return l.Namespace == at.Namespace && l.Name == at.Name
	}) {
		return live
	}
	return nil
}

// NoteReturned implements observe.Cache.
func (*cache) NoteReturned(int, *drift.Live) {}

// OwnedBy implements observe.Cache.
func (c *cache) OwnedBy(i int, uid types.UID) []*drift.Live {
	return c.objects(i, func(l *drift.Live) bool { return marks.Marked(l, uid) })
}

// Objects implements observe.Cache.
func (c *cache) Objects(i int) []*drift.Live {
	return c.objects(i, func(*drift.Live) bool { return true })
}

// BeforeObjectsOf implements observe.Cache.
func (c *cache) BeforeObjectsOf(name string) []*drift.Live {
	return c.objects(operator.BeforeIndex, func(l *drift.Live) bool {
		ref, _, ok := marks.ParseOwnerMark(l.OwnerMark)
		return marks.IsBeforeObject(l) && (ok && ref.Name == name ||
			slices.ContainsFunc(l.Owners, func(o drift.OwnerRef) bool { return o.Name == name }))
	})
}

// Deleting implements observe.Cache.
func (c *cache) Deleting() (refs []operator.Ref) {
	for _, u := range c.cluster.Objects(c.pipeline.Upstream.GVR) {
		if u.GetDeletionTimestamp() != nil {
			refs = append(refs, operator.Ref{Namespace: u.GetNamespace(), Name: u.GetName()})
		}
	}
	return refs
}

// inputObjects are the objects among which those of an input are.
func (c *cache) inputObjects(source *desired.InputSource) (list []*unstructured.Unstructured) {
	if !source.HasRows() {
		return c.cluster.Objects(source.Kind.GVR)
	}
	for _, row := range c.rows {
		if row.GetNamespace() == source.Name {
			list = append(list, row)
		}
	}
	return list
}

// Input implements observe.Cache.
func (c *cache) Input(i int, at operator.Ref) observe.Input {
	source := c.pipeline.Inputs[i]
	for _, u := range c.inputObjects(source) {
		if u.GetNamespace() == at.Namespace && u.GetName() == at.Name {
			return newInput(source, u)
		}
	}
	return nil
}

// Inputs implements observe.Cache.
func (c *cache) Inputs(i int, _ *desired.Listing) (list []observe.Input) {
	source := c.pipeline.Inputs[i]
	for _, u := range c.inputObjects(source) {
		if source.Shows(u) {
			list = append(list, newInput(source, u))
		}
	}
	return list
}

// input is what is read of an input.
type input struct {
	*unstructured.Unstructured
	match desired.Match
	read  map[string]any
}

func newInput(source *desired.InputSource, u *unstructured.Unstructured) input {
	return input{u, source.View.Match(u.Object), source.View.Cut(u.Object)}
}

// Match implements pipeline.Object.
func (i input) Match() desired.Match { return i.match }

// Digest implements observe.Input.
func (i input) Digest() canonical.Sum { return canonical.Digest(i.read) }

// Unpack implements observe.Input.
func (i input) Unpack() (map[string]any, error) {
	return (&unstructured.Unstructured{Object: i.read}).DeepCopy().Object, nil
}
