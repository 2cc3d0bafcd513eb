package reconcile

import (
	"context"
	"slices"
	"sync"

	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/pipeline"
)

// readers are the upstreams that read each input, whether it exists or not.
type readers struct {
	mu sync.Mutex
	by map[inputKey]map[pipeline.Ref]struct{}
}

type inputKey struct {
	input int
	at    pipeline.Ref
}

// move replaces the inputs that an upstream read by those that it reads now.
func (r *readers) move(reader pipeline.Ref, from, to []pipeline.InputRef) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, ref := range from {
		key := inputKey{i, ref.At}
		if i < len(to) && to[i].At == ref.At {
			continue
		}
		delete(r.by[key], reader)
		if len(r.by[key]) == 0 {
			delete(r.by, key)
		}
	}
	for i, ref := range to {
		if ref.At.Name == "" {
			continue
		}
		if r.by == nil {
			r.by = map[inputKey]map[pipeline.Ref]struct{}{}
		}
		key := inputKey{i, ref.At}
		if r.by[key] == nil {
			r.by[key] = map[pipeline.Ref]struct{}{}
		}
		r.by[key][reader] = struct{}{}
	}
}

// of lists the readers of an input's objects.
func (r *readers) of(input int, objects []pipeline.Ref) []pipeline.Ref {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []pipeline.Ref
	for _, at := range objects {
		list = slices.Grow(list, len(r.by[inputKey{input, at}]))
		for reader := range r.by[inputKey{input, at}] {
			list = append(list, reader)
		}
	}
	return list
}

// findInputs reads the upstream's inputs from the caches. The upstream is registered as their reader first: any later change
// enqueues it.
func (r *reconciliation) findInputs(ctx context.Context) {
	if len(r.Pipeline.Inputs) == 0 {
		return
	}
	rec := r.record
	if rec.inputsOf != r.upstream.GetResourceVersion() || rec.inputs == nil {
		refs := r.Pipeline.InputRefs(ctx, r.upstream)
		r.readers.move(r.ref, rec.inputs, refs)
		if rec.inputs, rec.inputsOf = refs, r.upstream.GetResourceVersion(); ctx.Err() != nil {
			rec.inputsOf = "" // an evaluation that was cut short says nothing about the upstream
		}
	}
	r.inputs = make([]Input, len(rec.inputs))
	digests := make([]any, len(rec.inputs))
	for i, ref := range rec.inputs {
		if r.inputs[i] = r.Cache.Input(i, ref.At); r.inputs[i] != nil {
			digest := r.inputs[i].Digest()
			digests[i] = string(digest[:])
		} else if ref.Err != nil {
			digests[i] = []any{ref.Err.Error()}
		}
	}
	r.inputsDigest = drift.Digest(digests)
	r.unpacked = nil
}

// inputsRead are the inputs as findInputs found them.
func (r *reconciliation) inputsRead() pipeline.Inputs {
	if r.unpacked == nil {
		in := r.Pipeline.InputsAt(r.record.inputs, func(s *pipeline.InputSource, _ pipeline.Ref) map[string]any {
			if r.inputs[s.Index] == nil {
				return nil
			}
			obj, err := r.inputs[s.Index].Unpack()
			if err != nil { // it was packed by this process: a mistake of this program
				panic(err)
			}
			return obj
		})
		in = in.Sharing(r.acquireSlot)
		r.unpacked = &in
	}
	return *r.unpacked
}

// document is the whole document to send for downstream i; live is nil at creation.
func (r *reconciliation) document(w *pipeline.Desired, k int, live *drift.Live) (map[string]any, error) {
	document, err := r.Pipeline.Document(w, k, r.upstream, r.inputsRead(), live)
	if err == nil {
		r.notifyObserver(func(to Observer) { to.Rendered(k, document) })
	}
	return document, err
}
