package observe

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/corollary-dev/corollary/pkg/canonical"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/desired"
	"github.com/corollary-dev/corollary/pkg/operator/marks"
	"github.com/corollary-dev/corollary/pkg/rules"
)

// foundInput is an input in the caches.
type foundInput struct {
	one  Input   // nil for a missing one
	list []Input // of a list
	err  error   // why the list is unknown
}

// objects are the objects of the input.
func (f foundInput) objects() []Input {
	if f.one != nil {
		return []Input{f.one}
	}
	return f.list
}

// digest is over what is read of those objects that count.
func (f foundInput) digest(ref desired.InputRef, counts func(Input) bool) any {
	if err := cmp.Or(ref.Err, f.err); err != nil {
		return []any{err.Error()}
	}
	if f.one == nil && ref.List == nil {
		return nil
	}
	var digests []any
	for _, o := range f.objects() {
		if counts(o) {
			digest := o.Digest()
			digests = append(digests, string(digest[:]))
		}
	}
	switch {
	case ref.List != nil:
		return map[string]any{"list": digests}
	case len(digests) == 0: // as if it were missing
		return nil
	}
	return digests[0]
}

// FindInputs reads the upstream's inputs from the caches. The upstream is registered as their reader first: any later
// change enqueues it.
func (st *State) FindInputs(ctx context.Context) {
	if len(st.Pipeline.Inputs) == 0 {
		return
	}
	known, version := st.Memory.Inputs(), st.Upstream.GetResourceVersion()
	if known.Version != version || known.Refs == nil {
		refs := st.Pipeline.InputRefs(ctx, st.Upstream)
		st.Readers.Move(st.Ref, known.Refs, refs)
		late := slices.ContainsFunc(refs, func(ref desired.InputRef) bool { return errors.Is(ref.Err, rules.ErrTime) })
		if ctx.Err() != nil || late {
			version = "" // an evaluation that was cut short says nothing about the upstream
		}
		st.Memory.SetInputs(refs, version)
	}
	st.readInputs(ctx)
}

// ReadsSlowInputs reports whether an input is not known because its expression took too long.
func (st *State) ReadsSlowInputs() bool {
	for i, ref := range st.Memory.Inputs().Refs {
		if errors.Is(ref.Err, rules.ErrTime) || i < len(st.inputs) && errors.Is(st.inputs[i].err, rules.ErrTime) {
			return true
		}
	}
	return false
}

// readInputs reads the inputs to which the record refers.
func (st *State) readInputs(ctx context.Context) {
	known := st.Memory.Inputs()
	inputs, digests := make([]foundInput, len(known.Refs)), make([]any, len(known.Refs))
	for i, ref := range known.Refs {
		switch {
		case ref.List == nil:
			inputs[i].one = st.Cache.Input(i, ref.At)
		case st.inputs != nil && st.inputsOf == known.Version: // a change since then enqueues the upstream
			inputs[i] = st.inputs[i]
		default:
			inputs[i].list, inputs[i].err = desired.Members(ctx, st.Pipeline.Inputs[i], ref.List, st.Cache.Inputs(i, ref.List))
		}
		digests[i] = inputs[i].digest(ref, func(Input) bool { return true })
	}
	st.inputs, st.inputsOf = inputs, known.Version
	st.InputsDigest = canonical.Digest(digests)
	st.unpacked = nil
}

// InputsRead are the inputs as findInputs found them.
func (st *State) InputsRead() desired.Inputs {
	if st.unpacked == nil {
		in := st.Pipeline.InputsAt(st.Memory.Inputs().Refs, foundObjects(st.inputs)).
			Sharing(st.AcquireSlot).WithSiblings(st.Sibling)
		st.unpacked = &in
	}
	return *st.unpacked
}

// Sibling returns what is kept of an object of the upstream's own, as the cache shows it or an answer that is newer.
func (st *State) Sibling(downstream int, at operator.Ref) map[string]any {
	cached := func() *drift.Live { return st.Cache.Live(downstream, at) }
	live := cached()
	if w := st.Memory.Desired(); w != nil {
		isIt := func(o operator.DesiredObject) bool {
			return o.Downstream == downstream && o.Target == at && o.Wanted && o.Err == nil
		}
		if k := slices.IndexFunc(w.Objects, isIt); k >= 0 {
			live, _ = st.Memory.Latest(k, at, cached, st.Began)
		}
	}
	if live == nil {
		return nil
	}
	known := IsRecorded(st.Pipeline.Settings, st.Recorded(), live.UID) || st.Memory.Has(live.UID, operator.NoIndex)
	if !marks.OwnsFor(st.Pipeline.Downstreams[downstream].Downstream, live, st.Upstream.GetUID(), known) {
		return nil
	}
	if live.Kept == nil {
		return map[string]any{} // it has none of the fields that are read
	}
	return live.Kept
}

// foundObjects are the inputs as templates see them.
type foundObjects []foundInput

// One implements pipeline.Objects.
func (f foundObjects) One(s *desired.InputSource, _ operator.Ref) map[string]any {
	if f[s.Index].one == nil {
		return nil
	}
	return unpack(f[s.Index].one)
}

// Listed implements pipeline.Objects.
func (f foundObjects) Listed(s *desired.InputSource, _ *desired.Listing) ([]any, error) {
	list := make([]any, len(f[s.Index].list))
	for i, o := range f[s.Index].list {
		list[i] = unpack(o)
	}
	return list, f[s.Index].err
}

func unpack(i Input) map[string]any {
	obj, err := i.Unpack()
	if err != nil { // it was packed by this process: a mistake of this program
		panic(err)
	}
	return obj
}
