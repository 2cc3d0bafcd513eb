package write

import (
	"sync"

	"github.com/corollary-dev/corollary/pkg/operator"
)

// Unstorable are the upstreams for which values of status.fields are left out, because the API server refused them by
// the current definition of their kind. With another definition they are tried again.
type Unstorable struct {
	dropped     sync.Once // has logged which status fields the kind cannot store
	mu          sync.Mutex
	upstreams   map[operator.Ref]struct{}
	definitions map[string]int // how often the watch of a namespace has found another one; "" is that of all
}

// definition is the number of the definition by which the API server validates an upstream now.
func (r *Unstorable) definition(ref operator.Ref) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.number(ref)
}

func (r *Unstorable) number(ref operator.Ref) int {
	if ref.Namespace == "" {
		return r.definitions[""]
	}
	return r.definitions[""] + r.definitions[ref.Namespace]
}

// note remembers an upstream. It returns false if the definition has changed since.
func (r *Unstorable) note(ref operator.Ref, definition int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.number(ref) != definition {
		return false
	}
	if r.upstreams == nil {
		r.upstreams = map[operator.Ref]struct{}{}
	}
	r.upstreams[ref] = struct{}{}
	return true
}

// Forget drops an upstream.
func (r *Unstorable) Forget(ref operator.Ref) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.upstreams, ref)
}

// Expire records that the definition may have changed, and returns the upstreams to reconcile; namespace is that of the
// watch that showed it.
func (r *Unstorable) Expire(namespace string) (refs []operator.Ref) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.definitions == nil {
		r.definitions = map[string]int{}
	}
	r.definitions[namespace]++
	for ref := range r.upstreams {
		if namespace == "" || ref.Namespace == namespace {
			refs = append(refs, ref)
			delete(r.upstreams, ref)
		}
	}
	return refs
}
