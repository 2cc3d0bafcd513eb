package informers

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unique"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/informers/kept"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/desired"
	"github.com/corollary-dev/corollary/pkg/operator/marks"
	"github.com/corollary-dev/corollary/pkg/reconcile"
	"github.com/corollary-dev/corollary/pkg/reconcile/observe"
)

// Cache is what the watches of one pipeline show; it implements observe.Cache.
type Cache struct {
	pipeline   *desired.Renderer
	namespaces stores
	inputs     []stores
	within     []string // the namespaces in which upstreams are watched; "" is all of them
	// sharded is replaced, never changed, when a set of shards comes or goes.
	sharded atomic.Pointer[sharded]
	// mu is held while that is done. opener opens the watches of a set.
	mu     sync.Mutex
	opener *watcher
}

// sharded are the stores that belong to shards, if there are any.
type sharded struct {
	upstreams   stores
	downstreams []stores
	before      stores // the objects of deletion.before
}

// all lists them.
func (s *sharded) all() []stores { return append([]stores{s.upstreams, s.before}, s.downstreams...) }

// NewCache makes a cache that is empty before Open.
func NewCache(p *desired.Renderer) *Cache {
	c := &Cache{pipeline: p, inputs: make([]stores, len(p.Inputs))}
	c.sharded.Store(&sharded{downstreams: make([]stores, len(p.Downstreams))})
	return c
}

// now are the stores that belong to shards.
func (c *Cache) now() *sharded { return c.sharded.Load() }

// all lists the stores of every kind.
func (c *Cache) all() []stores {
	return slices.Concat(c.now().all(), []stores{c.namespaces}, c.inputs)
}

// Unsynced lists the watches without their first list, each once.
func (c *Cache) Unsynced() []string { return unsynced(c.all()) }

func unsynced(all []stores) []string {
	var waiting []string
	for _, d := range all {
		waiting = append(waiting, d.unsynced()...)
	}
	slices.Sort(waiting)
	return slices.Compact(waiting)
}

// Upstreams lists the upstreams.
func (c *Cache) Upstreams() []operator.Ref {
	var refs []operator.Ref
	for p := range c.packed() {
		refs = append(refs, p.Ref())
	}
	return refs
}

// Deleting implements observe.Cache.
func (c *Cache) Deleting() []operator.Ref {
	var refs []operator.Ref
	for p := range c.packedThat(func(desired.MatchResult) bool { return true }) {
		if len(p.Finalizers()) > 0 {
			refs = append(refs, p.Ref())
		}
	}
	return refs
}

// packed are the upstreams that the watches show, less those that do not meet watch.matchConditions.
func (c *Cache) packed() iter.Seq[*kept.Packed] { return c.packedThat(desired.MatchResult.IsMet) }

func (c *Cache) packedThat(match func(desired.MatchResult) bool) iter.Seq[*kept.Packed] {
	return func(yield func(*kept.Packed) bool) {
		for _, sub := range c.now().upstreams {
			for _, obj := range sub.list() {
				if p, ok := obj.(*kept.Packed); ok && match(p.MatchResult()) && !yield(p) {
					return
				}
			}
		}
	}
}

// Unknown has the error of each object of which it is not known whether it is an upstream: a match condition cannot be
// evaluated.
func (c *Cache) Unknown() map[operator.Ref]error {
	unknown := map[operator.Ref]error{}
	for p := range c.packedThat(func(m desired.MatchResult) bool { return m.Err != nil }) {
		unknown[p.Ref()] = p.MatchResult().Err
	}
	return unknown
}

// upstream is one of them; nil for none.
func (c *Cache) upstream(ref operator.Ref) *kept.Packed {
	p, ok := c.now().upstreams.get(ref).(*kept.Packed)
	if !ok || !p.MatchResult().IsMet() {
		return nil
	}
	return p
}

// WrittenVersions counts the upstreams by the versions of their kind in which managers wrote them: the given number of
// versions with the most upstreams, and the others together as otherVersions. Whoever writes an upstream can forge
// managedFields.
func (c *Cache) WrittenVersions(atMost int) map[string]int {
	alike := map[unique.Handle[kept.Writers]]int{}
	for p := range c.packed() {
		alike[p.Writers]++
	}
	counts := map[string]int{}
	for by, n := range alike {
		for version := range strings.SplitSeq(strings.TrimSuffix(by.Value().Versions, kept.NameEnd), kept.NameEnd) {
			if version != "" {
				counts[version] += n
			}
		}
	}
	names := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	for _, name := range names[min(len(names), atMost):] {
		counts[otherVersions] += counts[name]
		delete(counts, name)
	}
	return counts
}

// otherVersions is not a valid name of a version.
const otherVersions = "(other)"

// Namespaces lists the namespaces in which upstreams are watched; "" is all of them.
func (c *Cache) Namespaces() []string { return c.within }

// Downstreams are the downstreams that the watches show, by index. One that belongs to several downstreams of one kind
// is returned for each.
func (c *Cache) Downstreams() iter.Seq2[int, *drift.Live] {
	return func(yield func(int, *drift.Live) bool) {
		for i, s := range c.now().downstreams {
			for _, sub := range s {
				for _, obj := range sub.list() {
					if live, ok := obj.(*drift.Live); ok && !yield(i, live) {
						return
					}
				}
			}
		}
	}
}

// MarkedFor are those whose owner annotation names an upstream, or that have lost their owner mark, for the zero Ref;
// the factory must index by it.
func (c *Cache) MarkedFor(ref operator.Ref) iter.Seq2[int, *drift.Live] {
	return func(yield func(int, *drift.Live) bool) {
		for i, s := range c.now().downstreams {
			for _, live := range s.indexed(byUpstream, ref.String()) {
				if !yield(i, live) {
					return
				}
			}
		}
	}
}

// CountDownstreams counts them, each once, though the watches of several downstreams of one kind may show it.
func (c *Cache) CountDownstreams() int {
	type watches map[*sharedWatch]*subscription
	kinds := map[schema.GroupVersionResource]watches{}
	for _, d := range c.now().downstreams {
		for _, sub := range d {
			if kinds[sub.key.GVR] == nil {
				kinds[sub.key.GVR] = watches{}
			}
			kinds[sub.key.GVR][sub.shared] = sub
		}
	}
	n := 0
	for _, shown := range kinds {
		alike, seen := map[Key]struct{}{}, map[types.UID]struct{}{}
		for _, sub := range shown {
			alike[sub.key.withoutShards()] = struct{}{}
		}
		for _, sub := range shown {
			objects := sub.list()
			if len(shown) == 1 || len(alike) == 1 && sub.key.ShardLabel != "" { // an object has one label
				n += len(objects)
				continue
			}
			for _, obj := range objects {
				if live, ok := obj.(*drift.Live); ok {
					seen[live.UID] = struct{}{}
				}
			}
		}
		n += len(seen)
	}
	return n
}

// Candidates lists the upstreams, and those that the owner marks of downstreams name, each once: what a start
// reconciles.
func (c *Cache) Candidates(r *reconcile.Reconciler) []operator.Ref {
	return candidates(c.now(), r, r.Deselected.Refs())
}

func candidates(from *sharded, r *reconcile.Reconciler, more []operator.Ref) []operator.Ref {
	seen := map[operator.Ref]struct{}{}
	for _, ref := range more {
		seen[ref] = struct{}{}
	}
	for _, sub := range from.upstreams {
		for _, obj := range sub.list() {
			if p, ok := obj.(*kept.Packed); ok && p.MatchResult().IsMet() {
				seen[p.Ref()] = struct{}{}
			}
		}
	}
	for _, d := range append(slices.Clip(from.downstreams), from.before) {
		for _, sub := range d {
			for _, obj := range sub.list() {
				live, _ := obj.(*drift.Live)
				for _, ref := range marks.UpstreamsOf(r.Pipeline.Settings, live) {
					seen[ref] = struct{}{}
				}
			}
		}
	}
	return slices.Collect(maps.Keys(seen))
}

// NoteLeftSince reports to a reconciler the upstreams in another cache, which selects as this one does, that are not in
// this one.
func (c *Cache) NoteLeftSince(before *Cache, r *reconcile.Reconciler) {
	for p := range before.packed() {
		if now, ok := c.now().upstreams.get(p.Ref()).(*kept.Packed); !ok || now.MatchResult().Unmet != "" {
			r.Deselected.Upstream(p.Ref(), p.UID)
		}
	}
}

// Upstream implements Cache.
func (c *Cache) Upstream(ref operator.Ref) (*unstructured.Unstructured, error) {
	p := c.upstream(ref)
	if p == nil {
		return nil, nil
	}
	return p.Unpack()
}

// UpstreamUID implements Cache.
func (c *Cache) UpstreamUID(ref operator.Ref) types.UID {
	if p := c.upstream(ref); p != nil {
		return p.UID
	}
	return ""
}

// Excludes implements Cache.
func (c *Cache) Excludes(ref operator.Ref) bool {
	p, ok := c.now().upstreams.get(ref).(*kept.Packed)
	return ok && !p.MatchResult().IsMet()
}

// HasApplied implements Cache.
func (c *Cache) HasApplied(ref operator.Ref, manager string) bool {
	p := c.upstream(ref)
	return p != nil && p.AppliedBy(manager)
}

// Watches implements Cache.
func (c *Cache) Watches(namespace string) bool {
	return slices.Contains(c.within, "") || slices.Contains(c.within, namespace)
}

// NamespaceLabels implements Cache. Each Namespace may be watched by its name.
func (c *Cache) NamespaceLabels(name string) (labels.Set, bool) {
	s := c.namespaces
	if sub := s[part{namespace: name}]; sub != nil {
		s = stores{part{}: sub}
	}
	ns, ok := s.get(operator.Ref{Name: name}).(*unstructured.Unstructured)
	if !ok {
		return nil, false
	}
	return ns.GetLabels(), true
}

// objects are the stores of downstream i, or of deletion.before.
func (c *Cache) objects(i int) stores {
	if i == operator.BeforeIndex {
		return c.now().before
	}
	return c.now().downstreams[i]
}

// Live implements Cache.
func (c *Cache) Live(i int, at operator.Ref) *drift.Live {
	live, _ := c.objects(i).get(at).(*drift.Live)
	return live
}

// NoteReturned implements Cache.
func (c *Cache) NoteReturned(i int, live *drift.Live) {
	for at, sub := range c.objects(i) {
		if sub.shared.filter == nil && (at.namespace == "" || at.namespace == live.Namespace) {
			sub.shared.returned.Add(live)
		}
	}
}

// OwnedBy implements Cache.
func (c *Cache) OwnedBy(i int, uid types.UID) []*drift.Live {
	bucket := c.objects(i).indexed(byOwner, bucketOf(string(uid)))
	return slices.DeleteFunc(bucket, func(live *drift.Live) bool { return !isOwnedBy(live, uid) })
}

// Objects implements Cache.
func (c *Cache) Objects(i int) (list []*drift.Live) {
	for _, sub := range c.objects(i) {
		for _, obj := range sub.list() {
			if live, ok := obj.(*drift.Live); ok {
				list = append(list, live)
			}
		}
	}
	return list
}

// BeforeObjectsOf implements Cache.
func (c *Cache) BeforeObjectsOf(name string) []*drift.Live {
	return c.now().before.indexed(byBeforeOwner, name)
}

// Input implements Cache.
func (c *Cache) Input(i int, at operator.Ref) observe.Input {
	if found, ok := c.inputs[i].get(at).(*kept.Input); ok {
		return found
	}
	return nil
}

// Inputs implements Cache.
func (c *Cache) Inputs(i int, listing *desired.Listing) (list []observe.Input) {
	add := func(objects []any) {
		for _, obj := range objects {
			if found, ok := obj.(*kept.Input); ok {
				list = append(list, found)
			}
		}
	}
	values := kept.Listings(listing)
	for at, sub := range c.inputs[i] {
		if listing.Namespace != "" && at.namespace != "" && at.namespace != listing.Namespace {
			continue
		}
		if values == nil {
			add(sub.list())
		}
		for _, value := range values {
			add(sub.indexed(kept.ByListing, value))
		}
	}
	return list
}

// byBeforeOwner indexes objects of deletion.before by the names of their upstreams.
const byBeforeOwner = "before"

func beforeOwners(obj any) ([]string, error) {
	live, ok := obj.(*drift.Live)
	if !ok || !marks.IsBeforeObject(live) {
		return nil, nil
	}
	var names []string
	for _, owner := range live.Owners {
		names = append(names, owner.Name)
	}
	if ref, _, ok := marks.ParseOwnerMark(live.OwnerMark); ok {
		names = append(names, ref.Name)
	}
	return names, nil
}

// byUpstream indexes downstreams by the upstream that their owner annotation names.
const byUpstream = "upstream"

func upstreamsNamed(obj any) ([]string, error) {
	live, ok := obj.(*drift.Live)
	if !ok {
		return nil, nil
	}
	ref, _, ok := marks.ParseOwnerMark(live.OwnerMark)
	if marks.HasLostOwner(live) {
		return []string{ref.String()}, nil
	}
	if !ok || marks.IsBeforeObject(live) {
		return nil, nil
	}
	return []string{ref.String()}, nil
}
