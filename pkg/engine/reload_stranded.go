package engine

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/pipeline"
)

// stranded says why a changed config must not take over: see session.stranded. It is empty if nothing keeps it from that.
func (o *operator) stranded(f *config.File) string {
	o.mu.Lock()
	s := o.current.session
	o.mu.Unlock()
	if s == nil {
		return ""
	}
	if why := s.stranded(&f.Operator); len(why) > 0 {
		return f.Path + ": " + strings.Join(why, "; ")
	}
	return ""
}

// Stranded says what keeps run from putting a changed config to work in the place of the one that is surveyed.
func (v *Survey) Stranded(changed *config.Operator) []string { return v.session.stranded(changed) }

// stranded says which names the current config has in the cluster, or had before and still carries over, that a changed one does
// not name: nothing would remove the finalizer, and fields that leave a template would stay, since their field manager owns them.
func (s *session) stranded(changed *config.Operator) []string {
	var list []string
	had, has := &s.Pipeline.Config.Conventions, &changed.Conventions
	for _, name := range dropped(had.Finalizers(), has.Finalizers()) {
		if n := s.countFinalizer(name); n > 0 {
			list = append(list, fmt.Sprintf("the config does not name the finalizer %s any more, which %d upstreams still have and nothing "+
				"would remove: set conventions.previous.finalizer: %s", name, n, name))
		}
	}
	for _, name := range dropped(had.FieldManagers(), has.FieldManagers()) {
		if n := s.countManaged(name == had.FieldManager); n > 0 {
			list = append(list, fmt.Sprintf("the config does not name the field manager %s any more, which owns fields of %d downstreams, and "+
				"what leaves a template would stay: set conventions.previous.fieldManager: %s", name, n, name))
		}
	}
	return list
}

func dropped(had, has []string) []string {
	return slices.DeleteFunc(had, func(name string) bool { return slices.Contains(has, name) })
}

// countManaged counts the downstreams that have fields of the current field manager, or that are still the previous one's, as the
// watches show them.
func (s *session) countManaged(current bool) int {
	managed := map[types.UID]bool{} // downstreams of one kind see the same objects
	for _, watches := range s.caches.downstreams {
		for _, sub := range watches {
			for _, obj := range sub.indexer().List() {
				live, ok := obj.(*drift.Live)
				if ok && (current && live.Managed && !live.Former || !current && live.Former && live.Outdated) {
					managed[live.UID] = true
				}
			}
		}
	}
	return len(managed)
}

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
