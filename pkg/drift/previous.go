package drift

import (
	"slices"

	"github.com/corollary-dev/corollary/pkg/drift/managed"
)

// presentIn reports whether an object has the hash or the owner annotation with the previous key.
func (p Previous) presentIn(metadata map[string]any) bool {
	return p.Hash.read(metadata) != "" || Key{Annotation: p.OwnerAnnotation}.read(metadata) != ""
}

// readTakeover sets whether managedFields entries must become ours. Entries for a subresource stay with their managers.
func (v *View) readTakeover(l *Live, es []managed.Entry) {
	if v.Previous.Manager == "" && len(v.Adopt) == 0 {
		return
	}
	for i := range es {
		if es[i].Subresource != "" {
			continue
		}
		previous := v.Previous.Manager != "" && es[i].Manager == v.Previous.Manager
		l.HasPreviousNames = l.HasPreviousNames || previous
		l.NeedsTakeover = l.NeedsTakeover || previous || slices.Contains(v.Adopt, es[i].Manager)
	}
}
