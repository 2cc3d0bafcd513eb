package informers

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/pipeline"
)

// watcher opens the watches of one cache.
type watcher struct {
	*Cache
	factory *Factory
	as      Identity
	feed    Feed
}

// Open opens the watches of a cache, with an identity's permissions. It does not wait for the first lists, and sets the
// selectors of the reconciler. Close ends the watches, also after an error.
func (c *Cache) Open(f *Factory, as Identity, feed Feed) error {
	w := &watcher{Cache: c, factory: f, as: as, feed: feed}
	watch := w.pipeline.Config.Watch
	var err error
	if w.feed.Reconciler.Selector, err = selectorOf(watch.LabelSelector); err != nil {
		return err
	}
	if err := w.openUpstreams(); err != nil {
		return err
	}
	if err := w.openNamespaces(); err != nil {
		return err
	}
	for i, d := range w.pipeline.Downstreams {
		if w.downstreams[i], err = w.openObjects(d); err != nil {
			return err
		}
	}
	if h := w.pipeline.Before; h != nil && !w.pipeline.Observing() {
		if w.before, err = w.openObjects(h.Object); err != nil {
			return err
		}
	}
	for i, source := range w.pipeline.Inputs {
		if err := w.openInput(i, source); err != nil {
			return err
		}
	}
	return nil
}

// openUpstreams watches the upstreams.
func (w *watcher) openUpstreams() (err error) {
	w.upstreams = stores{}
	if w.pipeline.HasRows() {
		w.upstreams[""], err = w.openRows()
		return err
	}
	for _, ns := range namespacesOf(w.pipeline.Config.Watch.Namespaces, w.pipeline.Upstream.Namespaced) {
		key := Key{Identity: w.as, GVR: w.pipeline.Upstream.GVR, Namespace: ns, Selector: w.feed.Reconciler.Selector.String(),
			View: packedViewOf(w.pipeline)}
		if w.upstreams[ns], err = w.factory.subscribe(
			key,
			packMatching(w.pipeline),
			w.feed.matching(w.feed.upstreams()),
			w.feed.OnWatchResult,
		); err != nil {
			return err
		}
	}
	return nil
}

// openObjects watches the objects of a downstream, if its kind is served. What it returns with an error must be closed, too.
func (w *watcher) openObjects(d *pipeline.Downstream) (stores, error) {
	open := stores{}
	if d.Kind.Missing != nil {
		return open, nil //nolint:nilerr // the watches of the kind are opened once it is there
	}
	selector := d.Selector.String()
	if w.pipeline.Observing() {
		selector = "" // objects of another writer have other labels, or none
	}
	for _, ns := range namespacesOf(targetNamespaces(w.pipeline, d), d.Kind.Namespaced) {
		key := Key{Identity: w.as, GVR: d.Kind.GVR, Namespace: ns, Selector: selector, View: d.View.ID()}
		sub, err := w.factory.subscribe(key, d.View.Transform(), w.feed.downstreams(d.Index), w.feed.OnWatchResult)
		if err != nil {
			return open, err
		}
		open[ns] = sub
	}
	return open, nil
}

// openNamespaces watches Namespaces if the config selects upstreams by their namespace's labels: those in watch.namespaces,
// each by its name, so that a permission for that one is enough; else all.
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
		w.namespaces[name] = sub
	}
	return nil
}

// openInput joins the watches of an input: of one object if the config fixes name and namespace, else of those of that name, or
// all, in the namespaces in which upstreams are watched; of a list of those that its selector selects.
func (w *watcher) openInput(i int, source *pipeline.InputSource) error {
	w.inputs[i] = stores{}
	if source.HasRows() {
		sub, err := w.openInputRows(i, source)
		if sub != nil {
			w.inputs[i][""] = sub
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
		key := Key{Identity: w.as, GVR: source.Kind.GVR, Namespace: ns, Selector: selector.String(), View: "input " + source.View.ID()}
		if name := source.Config.FixedName; name != "" {
			key.Fields = "metadata.name=" + name
		}
		sub, err := w.factory.subscribe(key, keepInput(source.View), w.feed.inputs(i), w.feed.OnWatchResult)
		if err != nil {
			return err
		}
		w.inputs[i][ns] = sub
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

// targetNamespaces are the namespaces in which a downstream may be: no more are watched, so that no more permissions are
// needed.
func targetNamespaces(p *pipeline.Pipeline, d *pipeline.Downstream) []string {
	switch d.Config.TargetNamespaces.From {
	case config.NamespacesList:
		return d.Config.TargetNamespaces.Names
	case config.NamespacesSame:
		return p.Config.Watch.Namespaces
	}
	return nil
}
