package departures

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/operator"
)

// Deselected are the upstreams that were seen losing the labels that the config selects by, their own or their
// namespace's: their downstreams are unwanted. An upstream that is merely found without the labels may be excluded by a
// change of the config, which deletes nothing.
type Deselected struct {
	upstreams  table[operator.Ref, types.UID]
	namespaces set[string]
}

// Upstream records that the watch no longer shows the upstream of that uid.
func (d *Deselected) Upstream(ref operator.Ref, uid types.UID) {
	d.upstreams.put(ref, func(types.UID) types.UID { return uid })
}

// Namespace records that namespaces are no longer selected, or are again.
func (d *Deselected) Namespace(names []operator.Ref, left bool) {
	for _, name := range names {
		if left {
			d.namespaces.add(name.Name)
		} else {
			d.namespaces.take(name.Name)
		}
	}
}

// Has reports whether the upstream of that uid, or its namespace, was seen leaving.
func (d *Deselected) Has(ref operator.Ref, uid types.UID) bool {
	seen, ok := d.upstreams.get(ref)
	return ok && seen == uid || ref.Namespace != "" && d.namespaces.has(ref.Namespace)
}

// Some reports whether an upstream of that name was seen leaving.
func (d *Deselected) Some(ref operator.Ref) bool {
	_, ok := d.upstreams.get(ref)
	return ok
}

// Refs lists the upstreams that were seen leaving.
func (d *Deselected) Refs() []operator.Ref { return slices.Collect(maps.Keys(d.upstreams.clone())) }

// Forget is for an upstream that is gone, cleaned up after, or selected. It returns the uid that was remembered.
func (d *Deselected) Forget(ref operator.Ref) types.UID {
	uid, _ := d.upstreams.take(ref)
	return uid
}

// ForgetThat forgets the upstreams with such a uid.
func (d *Deselected) ForgetThat(is func(uid types.UID) bool) {
	d.upstreams.remove(func(_ operator.Ref, uid types.UID) bool { return is(uid) })
}

// Reset forgets all of them.
func (d *Deselected) Reset() {
	d.upstreams.remove(func(operator.Ref, types.UID) bool { return true })
	d.namespaces.remove(func(string, struct{}) bool { return true })
}

// Inherit takes over what another session saw that selects likewise: what one selector excludes another one may select,
// and an edit of the config deletes nothing. Those that it shows again have come back. Neither session works.
func (d *Deselected) Inherit(from *Deselected, shows func(operator.Ref) types.UID) {
	for ref, uid := range from.upstreams.clone() {
		if shows(ref) != uid {
			d.Upstream(ref, uid)
		}
	}
	for name := range from.namespaces.clone() {
		d.namespaces.add(name)
	}
}
