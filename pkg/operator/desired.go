package operator

import (
	"slices"
	"sort"

	"github.com/corollary-dev/corollary/pkg/canonical"
	"github.com/corollary-dev/corollary/pkg/drift"
)

// Desired is what one upstream asks for. It depends on the upstream, its inputs and the pipeline alone, so it is
// remembered by their digest until one of them changes.
type Desired struct {
	// Invalid says which rules refuse the upstream; then nothing is known of Objects.
	Invalid []string
	// Objects are in the order of the config's downstreams, at least one for each.
	Objects []DesiredObject
	// Siblings are what was read of live objects.
	Siblings []SiblingRead
	// Items are those of forEach, by downstream; nil until they are needed.
	Items [][]any
}

// DesiredObject is one object that an upstream asks for.
type DesiredObject struct {
	// Downstream is the index of the downstream in the config.
	Downstream int
	// Item is the index of the item, as the expression gave them.
	Item int
	// Several: the downstream may have any number of objects. If it has none, or they are not known, one that is not
	// wanted is in the list.
	Several bool
	// ItemsUnknown is true for the one object of a downstream whose items are not known.
	ItemsUnknown bool
	// UnnamedItem: its item has no name, so that it may be another one that was edited; only with random values.
	UnnamedItem bool
	// Wanted is false if `when` says so.
	Wanted bool
	// Reference reports whether it is marked by an owner reference; else by the owner annotation.
	Reference bool
	// CutShort is true if its template got no time to end; for all objects, if an expression of any got none.
	CutShort bool
	// Err is why it is not known: `when` or the template failed, or an input is missing.
	Err error
	// Target is where it shall stand.
	Target Ref
	// Hash is H: the digest of the document with conventions, without owner marks and without itself.
	Hash string
	// Sum is the digest that the projection of the live object has where the API server changed nothing.
	Sum canonical.Sum

	Document map[string]any
	// Secret has the keys that the document of a Secret gives, in order; nil for another kind.
	Secret *drift.Secret
}

// TookTooLong reports whether a rule, an expression or a template got no time to end. It is retried: the process may
// have been busy.
func (d *Desired) TookTooLong() bool {
	return slices.ContainsFunc(d.Objects, func(o DesiredObject) bool { return o.CutShort })
}

// Failed is a desired state of which nothing is known, because of err.
func (s *Settings) Failed(err error) *Desired {
	w := &Desired{Objects: make([]DesiredObject, len(s.Downstreams))}
	for i := range w.Objects {
		w.Objects[i] = DesiredObject{Downstream: i, Several: s.Downstreams[i].Several(), Err: err}
	}
	return w
}

// First is the index of the first object of a downstream.
func (d *Desired) First(downstream int) int {
	return sort.Search(len(d.Objects), func(k int) bool { return d.Objects[k].Downstream >= downstream })
}

// Of are the objects of a downstream.
func (d *Desired) Of(downstream int) []DesiredObject {
	return d.Objects[d.First(downstream):d.First(downstream+1)]
}

// Forget drops the rendered documents and the items, which are large; Document renders again.
func (d *Desired) Forget() *Desired {
	d.Items = nil
	for k := range d.Objects {
		d.Objects[k].Document = nil
	}
	return d
}

// WaitingError is the error of a desired state that is not known before an input is there, or the kind of what is to be
// made.
type WaitingError struct{ Message string }

func (w *WaitingError) Error() string { return w.Message }

// Unknown reports whether it is not known which objects downstream i should have, so that none of it is superseded
// either.
func (d *Desired) Unknown(i int) bool {
	return d != nil && (len(d.Invalid) > 0 || slices.ContainsFunc(d.Of(i), func(o DesiredObject) bool {
		return o.Err != nil
	}))
}

// SiblingRead is what a Desired was made from: of a live object, what others read of it.
type SiblingRead struct {
	Downstream int
	At         Ref
	Sum        canonical.Sum
}
