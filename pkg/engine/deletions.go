package engine

import (
	"context"
	"errors"
	"slices"

	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/engine/kindchecks"
	"github.com/corollary-dev/corollary/pkg/engine/state"
	"github.com/corollary-dev/corollary/pkg/engine/work"
	"github.com/corollary-dev/corollary/pkg/operator/compile"
)

// A config with errors does not run, but it must not hold upstreams that are being deleted, either: if the errors do
// not concern deletions, a session finalizes these upstreams, and does nothing else.

// Additions to the errors of a config.
const (
	noteDeletes = "; until that is fixed, only upstreams that are being deleted are handled"
	noteHolds   = "; until that is fixed, upstreams that are being deleted keep the finalizer: the errors concern what " +
		"a deletion must do"
)

// Deletable returns the files with errors whose upstreams can be finalized nevertheless: they have a name, a finalizer,
// and no errors that concern deletions, and no other file claims their names.
func Deletable(files []*load.File) []*load.File {
	var list []*load.File
	for _, f := range files {
		if f.Valid() || f.Metadata.Name == "" || f.Source != nil || len(f.Conventions.Finalizers()) == 0 {
			continue
		}
		alone := !slices.ContainsFunc(files, func(other *load.File) bool {
			return other != f && len(load.Conflicts([]*load.File{f, other})) > 0
		})
		if cut, _ := f.ForDeletion(); cut != nil && alone {
			list = append(list, f)
		}
	}
	return list
}

// compileDeletions compiles what deletions need of a config that cannot run, and returns a note for its errors. It
// returns nil if that has errors, if no upstream can be held, and for a changed config, since the last good one works.
func (g *generation) compileDeletions() (p *compile.Pipeline, note string) {
	g.operator.mu.Lock()
	current := g.operator.current == g
	g.operator.mu.Unlock()
	if !current || !g.file.MayHold() {
		return nil, ""
	}
	cut, held := g.file.ForDeletion()
	if len(held) > 0 {
		return nil, noteHolds
	}
	p, _, err := g.compileAs(cut, compile.Options{Deletions: true})
	if err != nil {
		return nil, noteHolds + ": " + err.Error()
	}
	return p, noteDeletes
}

// awaitConfig ends a session that only deletes once the whole config compiles, as after a change of a kind's schema.
func (s *session) awaitConfig(live context.Context, end context.CancelCauseFunc) {
	if !s.pipeline.OnlyDeletes || !s.generation.file.Valid() {
		return
	}
	for wait := range kindchecks.Waits(s.engine.options.DiscoveryInterval) {
		if work.Pause(live, wait); live.Err() != nil {
			return
		}
		for _, k := range s.pipeline.Kinds() {
			s.engine.cluster.Invalidate(k.GVK)
		}
		if _, reason, err := s.generation.compile(); err == nil || reason == state.ReasonKindMissing {
			end(errConfigCompiles)
			return
		}
	}
}

// errConfigCompiles ends a session that only deletes.
var errConfigCompiles = errors.New("the config compiles now")

// setReason is generation.setCondition, except for a session that only deletes: its config stays refused.
func (s *session) setReason(r state.Reason, message string) {
	if !s.pipeline.OnlyDeletes {
		s.generation.setCondition(r, message)
	}
}
