package drift

import "slices"

// marks reports whether an object bears the hash or the owner mark under the name that it had before.
func (p Previous) marks(metadata map[string]any) bool {
	return p.Hash.read(metadata) != "" || Key{Annotation: p.OwnerAnnotation}.read(metadata) != ""
}

// readFormer notes the entries that are to become ours. Those for a subresource are left to their writers: a status is
// nothing that we would apply.
func (v *View) readFormer(l *Live, es []entry) {
	if v.Previous.Manager == "" && len(v.Adopt) == 0 {
		return
	}
	for i := range es {
		if es[i].subresource != "" {
			continue
		}
		before := v.Previous.Manager != "" && es[i].manager == v.Previous.Manager
		l.Outdated = l.Outdated || before
		l.Former = l.Former || before || slices.Contains(v.Adopt, es[i].manager)
	}
}
