package engine

import (
	"strings"

	"github.com/corollary-dev/corollary/pkg/config/load"
)

// replacementProblem says why a changed config must not take over: see informers.Cache.NamesInUse. It is empty if it may.
func (o *runner) replacementProblem(f *load.File) string {
	o.mu.Lock()
	s := o.current.session
	o.mu.Unlock()
	if s == nil {
		return ""
	}
	if why := s.cache.NamesInUse(&f.Operator); len(why) > 0 {
		return f.Path + ": " + strings.Join(why, "; ")
	}
	return ""
}
