package engine

import (
	"fmt"
	"slices"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/pipeline"
)

// stranded says why a changed config must not take over: it names another finalizer than the current one, upstreams still have
// the current one, and nothing would ever remove it. It is empty if that is not so.
func (o *operator) stranded(f *config.File) string {
	o.mu.Lock()
	current := o.current.file
	s := o.current.session
	o.mu.Unlock()
	if s == nil || !DropsFinalizer(&current.Operator, &f.Operator) {
		return ""
	}
	old := current.Conventions.Finalizer
	if n := s.countFinalizer(old); n > 0 {
		return fmt.Sprintf("%s: conventions.finalizer is no longer %s, which %d upstreams still have and nothing would remove: set conventions.previous.finalizer: %s",
			f.Path, old, n, old)
	}
	return ""
}

// DropsFinalizer tells whether the new config of an operator neither names the finalizer that the old one puts on upstreams nor
// says that it was used before.
func DropsFinalizer(old, changed *config.Operator) bool {
	name, c := old.Conventions.Finalizer, changed.Conventions
	return name != "" && c.Finalizer != name && (c.Previous == nil || c.Previous.Finalizer != name)
}

// FinalizerHolders counts the upstreams that have a finalizer, as the watches show them.
func (v *Survey) FinalizerHolders(name string) int { return v.session.countFinalizer(name) }

func (s *session) countFinalizer(name string) int {
	n := 0
	for _, ref := range s.caches.upstreams.keys() {
		if s.hasFinalizerNamed(ref, name) {
			n++
		}
	}
	return n
}

func (s *session) hasFinalizerNamed(ref pipeline.Ref, name string) bool {
	up, err := s.Cache.Upstream(ref)
	return err == nil && up != nil && slices.Contains(up.GetFinalizers(), name)
}
