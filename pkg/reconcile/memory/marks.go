package memory

import (
	"maps"

	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/drift"
)

// Mark says whether the other upstream exists that an owner annotation names. A uid that is gone does not come back;
// that one exists, or that this is not known, is found out again after a while.
type Mark struct {
	of string
	// IsVoid is true if the upstream does not exist.
	IsVoid bool
	Retry  Retry
}

// Mark is what is known of the upstream that the owner annotation of an object names.
func (n *Notes) Mark(live *drift.Live) *Mark {
	if m := n.marks[live.UID]; m != nil && m.of == live.OwnerMark {
		return m
	}
	if n.marks == nil {
		n.marks = map[types.UID]*Mark{}
	}
	n.marks[live.UID] = &Mark{of: live.OwnerMark}
	return n.marks[live.UID]
}

// DropMarks forgets what is known of the upstreams that the objects with such uids name.
func (n Notes) DropMarks(such func(types.UID) bool) {
	maps.DeleteFunc(n.marks, func(uid types.UID, _ *Mark) bool { return such(uid) })
}

// WithMark returns an object, or nil, with what is known of the upstream that its owner annotation names.
func (n Notes) WithMark(live *drift.Live) *drift.Live {
	if live == nil {
		return nil
	}
	if m := n.marks[live.UID]; m == nil || m.of != live.OwnerMark || !m.IsVoid {
		return live
	}
	void := *live
	void.MarkVoid = true
	return &void
}
