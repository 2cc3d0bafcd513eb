package reconcile

import (
	"context"
	"slices"
	"sync"

	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/pipeline"
)

// readers knows which upstreams read an input, there or not.
type readers struct {
	mu sync.Mutex
	by map[inputKey]map[pipeline.Ref]struct{}
}

type inputKey struct {
	input int
	at    pipeline.Ref
}

// move takes an upstream from the inputs that it read to those that it reads now.
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

// findInputs says where the upstream's inputs stand and takes them from the caches as they are now. The upstream is
// entered as a reader first: what changes from then on wakes it.
func (l *reconciliation) findInputs(ctx context.Context) {
	if len(l.Pipeline.Inputs) == 0 {
		return
	}
	r := l.record
	if r.inputsOf != l.upstream.GetResourceVersion() || r.inputs == nil {
		refs := l.Pipeline.InputRefs(ctx, l.upstream)
		l.readers.move(l.ref, r.inputs, refs)
		if r.inputs, r.inputsOf = refs, l.upstream.GetResourceVersion(); ctx.Err() != nil {
			r.inputsOf = "" // an evaluation that was cut short says nothing about the upstream
		}
	}
	l.found = make([]Input, len(r.inputs))
	digests := make([]any, len(r.inputs))
	for i, ref := range r.inputs {
		if l.found[i] = l.Cache.Input(i, ref.At); l.found[i] != nil {
			digest := l.found[i].Digest()
			digests[i] = string(digest[:])
		} else if ref.Err != nil {
			digests[i] = []any{ref.Err.Error()}
		}
	}
	l.read = drift.Digest(digests)
	l.unpacked = nil
}

// inputsRead are the inputs as findInputs found them.
func (l *reconciliation) inputsRead() pipeline.Inputs {
	if l.unpacked == nil {
		in := l.Pipeline.InputsAt(l.record.inputs, func(s *pipeline.InputSource, _ pipeline.Ref) map[string]any {
			if l.found[s.Index] == nil {
				return nil
			}
			obj, err := l.found[s.Index].Unpack()
			if err != nil { // it was packed by this process: a mistake of this program
				panic(err)
			}
			return obj
		})
		in = in.Sharing(l.acquireSlot)
		l.unpacked = &in
	}
	return *l.unpacked
}

// document is the whole document to send for downstream i; live is nil at creation.
func (l *reconciliation) document(w *pipeline.Desired, i int, live *drift.Live) (map[string]any, error) {
	return l.Pipeline.Document(w, i, l.upstream, l.inputsRead(), live)
}
