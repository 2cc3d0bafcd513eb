package informers

import (
	"fmt"
	"maps"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/informers/connections"
	"github.com/corollary-dev/corollary/pkg/informers/kept"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/desired"
	"github.com/corollary-dev/corollary/pkg/reconcile"
)

// watcher opens the watches of one cache.
type watcher struct {
	*Cache
	factory *Factory
	as      connections.Identity
	feed    Feed
}

// Open opens the watches of a cache, with an identity's permissions: of all objects, or of those in sets of shards
// where sets is not nil. It does not wait for the first lists, and sets the selectors of the reconciler. Close ends the
// watches, also after an error.
func (c *Cache) Open(f *Factory, as connections.Identity, feed Feed, sets []*ShardSet) error {
	w := &watcher{Cache: c, factory: f, as: as, feed: feed}
	c.opener, c.within = w, namespacesOf(w.pipeline.Config.Watch.Namespaces, w.pipeline.Upstream.Namespaced)
	var err error
	if w.feed.Reconciler.Selector, err = selectorOf(w.pipeline.Config.Watch.LabelSelector); err != nil {
		return err
	}
	if sets == nil {
		sets = []*ShardSet{nil}
	}
	for _, set := range sets {
		if err := c.OpenShards(set); err != nil {
			return err
		}
	}
	if err := w.openNamespaces(); err != nil {
		return err
	}
	for i, source := range w.pipeline.Inputs {
		if err := w.openInput(i, source); err != nil {
			return err
		}
	}
	return nil
}

// OpenShards opens the watches of a set of shards; nil is all objects. It does not wait for the first lists.
func (c *Cache) OpenShards(set *ShardSet) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	w, open := c.opener, c.now().clone()
	defer c.sharded.Store(open) // also what must be closed after an error
	if err := w.openUpstreams(open.upstreams, set); err != nil {
		return err
	}
	for i, d := range w.pipeline.Downstreams {
		if err := w.openObjects(open.downstreams[i], d, set); err != nil {
			return err
		}
	}
	if h := w.pipeline.Before; h != nil && !w.pipeline.Observing() {
		return w.openObjects(open.before, h.Object, set)
	}
	return nil
}

// CloseShards ends the watches of a set of shards.
func (c *Cache) CloseShards(set *ShardSet) {
	c.mu.Lock()
	defer c.mu.Unlock()
	open := c.now().clone()
	for _, s := range open.all() {
		for _, sub := range s.of(set) {
			sub.leave()
		}
		maps.DeleteFunc(s, func(at part, _ *subscription) bool { return at.shards == set })
	}
	c.sharded.Store(open)
}

// HasLoaded reports whether the first lists of a set of shards are in.
func (c *Cache) HasLoaded(set *ShardSet) bool { return len(unsynced(c.now().of(set).all())) == 0 }

// CannotLoad reports whether a first list of the set has failed for that long.
func (c *Cache) CannotLoad(set *ShardSet, d time.Duration) bool {
	for _, s := range c.now().of(set).all() {
		for _, sub := range s {
			if sub.fails(d) {
				return true
			}
		}
	}
	return false
}

// CandidatesIn is Candidates for a set of shards.
func (c *Cache) CandidatesIn(set *ShardSet, r *reconcile.Reconciler) []operator.Ref {
	return candidates(c.now().of(set), r, nil)
}

// of are the stores of one set of shards.
func (s *sharded) of(set *ShardSet) *sharded {
	some := &sharded{upstreams: s.upstreams.of(set), before: s.before.of(set)}
	for _, d := range s.downstreams {
		some.downstreams = append(some.downstreams, d.of(set))
	}
	return some
}

// clone is a copy that can be changed.
func (s *sharded) clone() *sharded {
	cloned := func(s stores) stores {
		if s == nil {
			return stores{}
		}
		return maps.Clone(s)
	}
	some := &sharded{upstreams: cloned(s.upstreams), before: cloned(s.before)}
	for _, d := range s.downstreams {
		some.downstreams = append(some.downstreams, cloned(d))
	}
	return some
}

// texts compresses what the cache keeps.
func (w *watcher) texts() *kept.Texts { return w.factory.connections.Texts }

// openUpstreams watches the upstreams.
func (w *watcher) openUpstreams(open stores, set *ShardSet) (err error) {
	var filter *shardFilter
	if set != nil {
		filter = &shardFilter{set: set, keys: uidOf, byServer: true}
	}
	if w.pipeline.HasRows() {
		return w.keep(open, part{"", set}, func() (*subscription, error) { return w.openRows(filter) })
	}
	for _, ns := range w.within {
		key := Key{Identity: w.as, GVR: w.pipeline.Upstream.GVR, Namespace: ns, Selector: w.feed.Reconciler.Selector.String(),
			View: kept.PackedViewOf(w.pipeline), Shards: set}
		err := w.keep(open, part{ns, set}, func() (*subscription, error) {
			return w.factory.subscribeTo(key, filter, w.texts().PackMatching(w.pipeline),
				w.feed.matching(w.feed.upstreams()), w.feed.OnWatchResult)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// keep adds what is opened to the stores, also with an error.
func (w *watcher) keep(to stores, at part, open func() (*subscription, error)) error {
	sub, err := open()
	if sub != nil {
		to[at] = sub
	}
	return err
}

// openObjects watches the objects of a downstream, if its kind is served.
func (w *watcher) openObjects(open stores, d *desired.Downstream, set *ShardSet) error {
	if d.Kind.Missing != nil {
		return nil //nolint:nilerr // the watches of the kind are opened once it is there
	}
	selector := d.Selector.String()
	if w.pipeline.Observing() {
		selector = "" // objects of another writer have other labels, or none
	}
	var filter *shardFilter
	label := ""
	if set != nil {
		label = w.pipeline.ShardLabel()
		filter = &shardFilter{set: set, keys: set.markedBy(&d.View, label), view: &d.View}
	}
	for _, ns := range namespacesOf(targetNamespaces(w.pipeline, d), d.Kind.Namespaced) {
		key := Key{Identity: w.as, GVR: d.Kind.GVR, Namespace: ns, Selector: selector, View: downstreamView + d.View.ID(),
			Shards: set, ShardLabel: label}
		err := w.keep(open, part{ns, set}, func() (*subscription, error) {
			return w.factory.subscribeTo(key, filter, d.View.Transform(), w.feed.downstreams(d.Index), w.feed.OnWatchResult)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// openNamespaces watches Namespaces if the config selects upstreams by their namespace's labels: those in
// watch.namespaces, each by its name, so that a permission for that one is enough; else all.
func (w *watcher) openNamespaces() error {
	selector := w.pipeline.Config.Watch.NamespaceSelector
	if selector == nil {
		return nil
	}
	var err error
	if w.feed.Reconciler.NamespaceSelector, err = metav1.LabelSelectorAsSelector(selector); err != nil {
		return fmt.Errorf("reading watch.namespaceSelector: %w", err)
	}
	w.namespaces = stores{}
	for _, name := range namespacesOf(w.pipeline.Config.Watch.Namespaces, w.pipeline.Upstream.Namespaced) {
		key := Key{Identity: w.as, GVR: schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, View: wholeView}
		if name != "" {
			key.Fields = "metadata.name=" + name
		}
		sub, err := w.factory.subscribe(key, keepWhole, w.feed.namespaces(w.Cache), w.feed.OnWatchResult)
		if err != nil {
			return err
		}
		w.namespaces[part{namespace: name}] = sub
	}
	return nil
}

// openInput joins the watches of an input: of one object if the config fixes name and namespace, else of those of that
// name, or all, in the namespaces in which upstreams are watched; of a list of those that its selector selects.
func (w *watcher) openInput(i int, source *desired.InputSource) error {
	w.inputs[i] = stores{}
	if source.HasRows() {
		sub, err := w.openInputRows(i, source)
		if sub != nil {
			w.inputs[i][part{}] = sub
		}
		return err
	}
	if source.Kind.Missing != nil {
		return nil //nolint:nilerr // the watches of the kind are opened once it is there
	}
	selector, err := source.Selects()
	if err != nil {
		return err
	}
	namespaces := source.Config.In(w.pipeline.Config.Watch.Namespaces, w.pipeline.Upstream.Namespaced)
	for _, ns := range namespacesOf(namespaces, source.Kind.Namespaced) {
		key := Key{Identity: w.as, GVR: source.Kind.GVR, Namespace: ns, Selector: selector.String(),
			View: "input " + source.View.ID()}
		if name := source.Config.FixedName; name != "" {
			key.Fields = "metadata.name=" + name
		}
		sub, err := w.factory.subscribe(key, w.texts().KeepInput(source.View), w.feed.inputs(i), w.feed.OnWatchResult)
		if err != nil {
			return err
		}
		w.inputs[i][part{namespace: ns}] = sub
	}
	return nil
}

// Close ends the watches.
func (c *Cache) Close() {
	for _, d := range c.all() {
		d.close()
	}
}

// selectorOf is the config's selector; everything if it has none.
func selectorOf(selector *metav1.LabelSelector) (labels.Selector, error) {
	if selector == nil {
		return labels.Everything(), nil
	}
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return nil, fmt.Errorf("reading watch.labelSelector: %w", err)
	}
	return parsed, nil
}

// namespacesOf lists the namespaces to watch; "" is all of them.
func namespacesOf(names []string, namespaced bool) []string {
	if len(names) == 0 || !namespaced {
		return []string{""}
	}
	return names
}

// targetNamespaces are the namespaces in which a downstream may be: no more are watched, so that no more permissions
// are needed.
func targetNamespaces(p *desired.Renderer, d *desired.Downstream) []string {
	switch d.Config.TargetNamespaces.From {
	case config.NamespacesList:
		return d.Config.TargetNamespaces.Names
	case config.NamespacesSame:
		return p.Config.Watch.Namespaces
	}
	return nil
}
