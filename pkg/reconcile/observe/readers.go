package observe

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/desired"
	"github.com/corollary-dev/corollary/pkg/rules"
)

// Readers are the upstreams that read each input, whether it exists or not.
type Readers struct {
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

// Move replaces the inputs that an upstream read by those that it reads now.
func (r *Readers) Move(reader operator.Ref, from, to []desired.InputRef) {
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
func (r *Readers) of(input int, o Input) []operator.Ref {
	r.mu.Lock()
	defer r.mu.Unlock()
	by := r.by[inputKey{input: input, at: operator.Ref{Namespace: o.GetNamespace(), Name: o.GetName()}}]
	return slices.AppendSeq(make([]operator.Ref, 0, len(by)), maps.Keys(by))
}

// ofLists lists the readers of lists that may have one of the objects, by namespace and key.
func (r *Readers) ofLists(input int, objects []Input) map[operator.Ref]*desired.Listing {
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

// Of lists the upstreams that read an object of an input, whether it exists or not. states are the object before and
// after a change; of a list the upstreams are those whose list has it in one of them.
func (r *Readers) Of(s *desired.InputSource, states []Input) []operator.Ref {
	switch {
	case len(states) == 0:
		return nil
	case s.Config.List == nil:
		return r.of(s.Index, states[0])
	}
	matches := make([]desired.Match, len(states))
	for k, state := range states {
		matches[k] = state.Match()
	}
	// All readers share one budget: those for whom nothing is left find out for themselves.
	budget := rules.NewBudget(context.Background())
	var list []operator.Ref
	for reader, l := range r.ofLists(s.Index, states) {
		if s.Concerns(l, budget, matches) {
			list = append(list, reader)
		}
	}
	return list
}
