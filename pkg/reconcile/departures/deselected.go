package departures

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/operator"
)

// Deselected are the upstreams that were seen losing the labels that the config selects by, their own or their namespace's:
// their downstreams are unwanted. An upstream that is merely found without the labels may be excluded by a change of the
// config, which deletes nothing.
type Deselected struct {
	mu         sync.Mutex
	upstreams  map[operator.Ref]types.UID
	namespaces map[string]struct{}
}

// Upstream records that the watch no longer shows the upstream of that uid.
func (d *Deselected) Upstream(ref operator.Ref, uid types.UID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.upstreams == nil {
		d.upstreams = map[operator.Ref]types.UID{}
	}
	d.upstreams[ref] = uid
}

// Namespace records that namespaces are no longer selected, or are again.
func (d *Deselected) Namespace(names []operator.Ref, left bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.namespaces == nil {
		d.namespaces = map[string]struct{}{}
	}
	for _, name := range names {
		if delete(d.namespaces, name.Name); left {
			d.namespaces[name.Name] = struct{}{}
		}
	}
}

// Has reports whether the upstream of that uid, or its namespace, was seen leaving.
func (d *Deselected) Has(ref operator.Ref, uid types.UID) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	seen, upstream := d.upstreams[ref]
	_, namespace := d.namespaces[ref.Namespace]
	return upstream && seen == uid || namespace && ref.Namespace != ""
}

// Some reports whether an upstream of that name was seen leaving.
func (d *Deselected) Some(ref operator.Ref) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, ok := d.upstreams[ref]
	return ok
}

// Refs lists the upstreams that were seen leaving.
func (d *Deselected) Refs() []operator.Ref {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Collect(maps.Keys(d.upstreams))
}

// Forget is for an upstream that is gone, cleaned up after, or selected. It returns the uid that was remembered.
func (d *Deselected) Forget(ref operator.Ref) types.UID {
	d.mu.Lock()
	defer d.mu.Unlock()
	defer delete(d.upstreams, ref)
	return d.upstreams[ref]
}

// ForgetThat forgets the upstreams with such a uid.
func (d *Deselected) ForgetThat(is func(uid types.UID) bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	maps.DeleteFunc(d.upstreams, func(_ operator.Ref, uid types.UID) bool { return is(uid) })
}

// Inherit takes over what another session saw; of namespaces only if it selected them by the same labels: what one selector excludes another
// one may select, and an edit of the config deletes nothing. Neither session works.
func (d *Deselected) Inherit(from *Deselected, sameNamespaces bool) {
	from.mu.Lock()
	upstreams, namespaces := maps.Clone(from.upstreams), map[string]struct{}{}
	if sameNamespaces {
		namespaces = maps.Clone(from.namespaces)
	}
	from.mu.Unlock()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.upstreams == nil {
		d.upstreams = map[operator.Ref]types.UID{}
	}
	maps.Copy(d.upstreams, upstreams)
	if d.namespaces == nil {
		d.namespaces = map[string]struct{}{}
	}
	maps.Copy(d.namespaces, namespaces)
}
