package reconcile

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/corollary-dev/corollary/pkg/canonical"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/desired"
	"github.com/corollary-dev/corollary/pkg/operator/marks"
	"github.com/corollary-dev/corollary/pkg/rules"
)

// readers are the upstreams that read each input, whether it exists or not.
type readers struct {
	mu sync.Mutex
	by map[inputKey]map[operator.Ref]*desired.Listing
}

// inputKey is where an input is, or of a list the namespace and the key of its objects.
type inputKey struct {
	input int
	at    operator.Ref
	key   string
}

func keyOf(input int, ref desired.InputRef) (key inputKey, isRead bool) {
	if l := ref.List; l != nil {
		return inputKey{input, operator.Ref{Namespace: l.Namespace}, l.Key}, true
	}
	return inputKey{input: input, at: ref.At}, ref.At.Name != ""
}

// move replaces the inputs that an upstream read by those that it reads now.
func (r *readers) move(reader operator.Ref, from, to []desired.InputRef) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, ref := range from {
		key, _ := keyOf(i, ref)
		if delete(r.by[key], reader); len(r.by[key]) == 0 {
			delete(r.by, key)
		}
	}
	for i, ref := range to {
		key, isRead := keyOf(i, ref)
		if !isRead {
			continue
		}
		if r.by == nil {
			r.by = map[inputKey]map[operator.Ref]*desired.Listing{}
		}
		if r.by[key] == nil {
			r.by[key] = map[operator.Ref]*desired.Listing{}
		}
		r.by[key][reader] = ref.List
	}
}

// of lists the readers of an input's object.
func (r *readers) of(input int, o Input) []operator.Ref {
	r.mu.Lock()
	defer r.mu.Unlock()
	by := r.by[inputKey{input: input, at: operator.Ref{Namespace: o.GetNamespace(), Name: o.GetName()}}]
	return slices.AppendSeq(make([]operator.Ref, 0, len(by)), maps.Keys(by))
}

// ofLists lists the readers of lists that may have one of the objects, by namespace and key.
func (r *readers) ofLists(input int, objects []Input) map[operator.Ref]*desired.Listing {
	r.mu.Lock()
	defer r.mu.Unlock()
	found := map[operator.Ref]*desired.Listing{}
	for _, o := range objects {
		for _, namespace := range []string{"", o.GetNamespace()} {
			at, key := operator.Ref{Namespace: namespace}, o.Match().Key
			if key != "" {
				maps.Copy(found, r.by[inputKey{input, at, key}])
				maps.Copy(found, r.by[inputKey{input, at, ""}])
				continue
			}
			for k, by := range r.by { // an object without the field may be in any list
				if k.input == input && k.at == at {
					maps.Copy(found, by)
				}
			}
		}
	}
	return found
}

// ReadersOf lists the upstreams that read an object of input i, whether it exists or not. states are the object before and after a
// change; of a list the upstreams are those whose list has it in one of them.
func (r *Reconciler) ReadersOf(i int, states []Input) []operator.Ref {
	s := r.Pipeline.Inputs[i]
	switch {
	case len(states) == 0:
		return nil
	case s.Config.List == nil:
		return r.readers.of(i, states[0])
	}
	matches := make([]desired.Match, len(states))
	for k, state := range states {
		matches[k] = state.Match()
	}
	// All readers share one budget: those for whom nothing is left find out for themselves.
	budget := rules.NewBudget(context.Background())
	var list []operator.Ref
	for reader, l := range r.readers.ofLists(i, states) {
		if s.Concerns(l, budget, matches) {
			list = append(list, reader)
		}
	}
	return list
}

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

// findInputs reads the upstream's inputs from the caches. The upstream is registered as their reader first: any later change
// enqueues it.
func (r *reconciliation) findInputs(ctx context.Context) {
	if len(r.Pipeline.Inputs) == 0 {
		return
	}
	known, version := r.record.Inputs(), r.upstream.GetResourceVersion()
	if known.Version != version || known.Refs == nil {
		refs := r.Pipeline.InputRefs(ctx, r.upstream)
		r.readers.move(r.ref, known.Refs, refs)
		late := slices.ContainsFunc(refs, func(ref desired.InputRef) bool { return errors.Is(ref.Err, rules.ErrTime) })
		if ctx.Err() != nil || late {
			version = "" // an evaluation that was cut short says nothing about the upstream
		}
		r.record.SetInputs(refs, version)
	}
	r.readInputs(ctx)
}

// readsSlowInputs reports whether an input is not known because its expression took too long.
func (r *reconciliation) readsSlowInputs() bool {
	for i, ref := range r.record.Inputs().Refs {
		if errors.Is(ref.Err, rules.ErrTime) || i < len(r.inputs) && errors.Is(r.inputs[i].err, rules.ErrTime) {
			return true
		}
	}
	return false
}

// readInputs reads the inputs to which the record refers.
func (r *reconciliation) readInputs(ctx context.Context) {
	known := r.record.Inputs()
	inputs, digests := make([]foundInput, len(known.Refs)), make([]any, len(known.Refs))
	for i, ref := range known.Refs {
		switch {
		case ref.List == nil:
			inputs[i].one = r.Cache.Input(i, ref.At)
		case r.inputs != nil && r.inputsOf == known.Version: // a change since then enqueues the upstream
			inputs[i] = r.inputs[i]
		default:
			inputs[i].list, inputs[i].err = desired.Members(ctx, r.Pipeline.Inputs[i], ref.List, r.Cache.Inputs(i, ref.List))
		}
		digests[i] = inputs[i].digest(ref, func(Input) bool { return true })
	}
	r.inputs, r.inputsOf = inputs, known.Version
	r.inputsDigest = canonical.Digest(digests)
	r.unpacked = nil
}

// inputsRead are the inputs as findInputs found them.
func (r *reconciliation) inputsRead() desired.Inputs {
	if r.unpacked == nil {
		in := r.Pipeline.InputsAt(r.record.Inputs().Refs, foundObjects(r.inputs)).Sharing(r.acquireSlot).WithSiblings(r.sibling)
		r.unpacked = &in
	}
	return *r.unpacked
}

// sibling returns what is kept of an object of the upstream's own, as the cache shows it or an answer that is newer.
func (r *reconciliation) sibling(downstream int, at operator.Ref) map[string]any {
	cached := func() *drift.Live { return r.Cache.Live(downstream, at) }
	live := cached()
	if w := r.record.Desired(); w != nil {
		isIt := func(o operator.DesiredObject) bool {
			return o.Downstream == downstream && o.Target == at && o.Wanted && o.Err == nil
		}
		if k := slices.IndexFunc(w.Objects, isIt); k >= 0 {
			live, _ = r.record.Latest(k, at, cached, r.now)
		}
	}
	if live == nil {
		return nil
	}
	known := isRecorded(r.Pipeline.Settings, r.recorded(), live.UID) || r.record.Has(live.UID, operator.NoIndex)
	if !marks.OwnsFor(r.Pipeline.Downstreams[downstream].Downstream, live, r.upstream.GetUID(), known) {
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

// document is the whole document to send for downstream i; live is nil at creation.
func (r *reconciliation) document(w *operator.Desired, k int, live *drift.Live) (map[string]any, error) {
	document, err := r.Pipeline.Document(w, k, r.upstream, r.inputsRead(), live)
	if err == nil {
		document = r.withShard(marks.WithToken(r.Pipeline.Settings, document, r.token()))
		r.notifyObserver(func(to Observer) { to.Rendered(k, document) })
	}
	return document, err
}
