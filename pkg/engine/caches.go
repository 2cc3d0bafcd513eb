package engine

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/pipeline"
	"github.com/corollary-dev/corollary/pkg/reconcile"
)

// caches are what a session's watches show.
type caches struct {
	upstreams   stores
	namespaces  stores
	downstreams []stores
	inputs      []stores
	before      stores // the objects of deletion.before
}

func newCaches(p *pipeline.Pipeline) *caches {
	return &caches{downstreams: make([]stores, len(p.Downstreams)), inputs: make([]stores, len(p.Inputs))}
}

// all lists the stores, of every kind.
func (c *caches) all() []stores {
	return slices.Concat([]stores{c.upstreams, c.namespaces, c.before}, c.downstreams, c.inputs)
}

// Upstream implements Cache.
func (c *caches) Upstream(ref pipeline.Ref) (*unstructured.Unstructured, error) {
	p, ok := c.upstreams.get(ref).(*packed)
	if !ok {
		return nil, nil
	}
	return p.unpack()
}

// UpstreamUID implements Cache.
func (c *caches) UpstreamUID(ref pipeline.Ref) types.UID {
	if p, ok := c.upstreams.get(ref).(*packed); ok {
		return p.UID
	}
	return ""
}

// HasApplied implements Cache.
func (c *caches) HasApplied(ref pipeline.Ref, manager string) bool {
	p, ok := c.upstreams.get(ref).(*packed)
	return ok && p.appliedBy(manager)
}

// Watches implements Cache.
func (c *caches) Watches(namespace string) bool { return c.upstreams.watch(namespace) }

// NamespaceLabels implements Cache. Each Namespace may be watched by its name.
func (c *caches) NamespaceLabels(name string) (labels.Set, bool) {
	s := c.namespaces
	if sub := s[name]; sub != nil {
		s = stores{"": sub}
	}
	ns, ok := s.get(pipeline.Ref{Name: name}).(*unstructured.Unstructured)
	if !ok {
		return nil, false
	}
	return ns.GetLabels(), true
}

// objects are the stores of downstream i, or of deletion.before.
func (c *caches) objects(i int) stores {
	if i == pipeline.BeforeIndex {
		return c.before
	}
	return c.downstreams[i]
}

// Live implements Cache.
func (c *caches) Live(i int, at pipeline.Ref) *drift.Live {
	live, _ := c.objects(i).get(at).(*drift.Live)
	return live
}

// OwnedBy implements Cache.
func (c *caches) OwnedBy(i int, uid types.UID) []*drift.Live {
	return c.objects(i).indexed(byOwner, string(uid))
}

// BeforeObjectsOf implements Cache.
func (c *caches) BeforeObjectsOf(name string) []*drift.Live {
	return c.before.indexed(byBeforeOwner, name)
}

// Input implements Cache.
func (c *caches) Input(i int, at pipeline.Ref) reconcile.Input {
	if found, ok := c.inputs[i].get(at).(*input); ok {
		return found
	}
	return nil
}

// byBeforeOwner indexes objects of deletion.before by the names of their upstreams.
const byBeforeOwner = "before"

func beforeOwners(obj any) ([]string, error) {
	live, ok := obj.(*drift.Live)
	if !ok || !pipeline.IsBeforeObject(live) {
		return nil, nil
	}
	var names []string
	for _, owner := range live.Owners {
		names = append(names, owner.Name)
	}
	if ref, _, ok := pipeline.ParseOwnerMark(live.OwnerMark); ok {
		names = append(names, ref.Name)
	}
	return names, nil
}
