package engine

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/pkg/engine/state"
	"github.com/corollary-dev/corollary/pkg/engine/work"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/operator/compile"
)

// errKindsChanged ends a session whose config was compiled against kinds that have changed.
var errKindsChanged = errors.New("a kind of the config was installed, removed or changed")

// schemaWait is how long kinds are checked after a sign that one has changed, in discovery intervals: the API server publishes a schema some
// time after it validates by it. Each check comes after half the time that has passed, so that a change is noticed soon. maxSchemaWait
// bounds how long further signs wait if the last ones were false.
const (
	schemaWait    = 60
	maxSchemaWait = 5 * time.Minute
)

// RecheckKinds has the kinds checked soon. It does not wait.
func (s *session) RecheckKinds() {
	select {
	case s.kindChecks <- struct{}{}:
	default: // they will be
	}
}

// watchesCustom reports whether a resource is one of the session's custom kinds.
func (s *session) watchesCustom(gvr schema.GroupVersionResource) bool {
	for _, k := range kindsOf(s.pipeline) {
		if k.GVR == gvr {
			return k.IsCustom()
		}
	}
	return false
}

// watchKinds compiles the config again, beside the session, once a kind is gone or its schema has changed. Without a sign of
// that it makes no request. It goes on afterwards, since the new session may be withdrawn before it takes over.
func (s *session) watchKinds(live context.Context, end context.CancelCauseFunc) {
	interval := s.engine.options.DiscoveryInterval
	wait, last := interval, time.Time{}
	for {
		select {
		case <-live.Done():
			return
		case <-s.kindChecks:
		}
		if time.Since(last) > 2*wait {
			wait = interval
		}
		s.checkKinds(live, interval, end)
		work.Pause(live, wait)
		wait, last = min(2*wait, maxSchemaWait), time.Now()
	}
}

// checkKinds checks the kinds several times, until another session is to take over, or live is done.
func (s *session) checkKinds(live context.Context, interval time.Duration, end context.CancelCauseFunc) {
	for passed, wait := time.Duration(0), interval/4; passed < schemaWait*interval; passed, wait = passed+wait, max(wait, (passed+wait)/2) {
		if work.Pause(live, wait); live.Err() != nil {
			return
		}
		switch {
		case s.kindGone(live):
			s.startOver(end)
			return
		case !s.schemasChanged(kindsOf(s.pipeline)) && !s.requirementsLost():
		case s.pipeline.OnlyDeletes:
			s.startOver(end)
			return
		case s.misreads():
			end(errKindsChanged)
			return
		case s.operator.renew(s.generation):
			return
		default:
			s.RecheckKinds()
		}
	}
}

// awaitKinds checks the missing kinds, and compiles the config again once one of them is served, or missing for another reason.
func (s *session) awaitKinds(live context.Context, end context.CancelCauseFunc) {
	missing := missingKinds(s.pipeline)
	if len(missing) == 0 {
		return
	}
	for wait := range s.engine.waits() {
		if work.Pause(live, wait); live.Err() != nil {
			return
		}
		if slices.ContainsFunc(missing, s.isFound) {
			s.startOver(end)
		}
	}
}

// isFound reports whether a missing kind can be compiled against now, or is missing for another reason. It reads what compiling
// reads: a kind that is served and whose schema cannot be read is still missing.
func (s *session) isFound(k kinds.Kind) bool {
	s.engine.cluster.Invalidate(k.GVK)
	_, err := s.engine.cluster.Kind(k.GVK)
	now := whyMissing(err)
	return now != notKnown && now != whyMissing(k.Missing)
}

// startOver compiles the config again: beside this session, or after its end if it does not work yet, or a changed config waits
// for something.
func (s *session) startOver(end context.CancelCauseFunc) {
	for _, k := range kindsOf(s.pipeline) {
		s.engine.cluster.Invalidate(k.GVK)
	}
	if s.operator.renew(s.generation) {
		s.operator.log.Info("a kind was installed or removed: compiling the config again")
	} else if !s.operator.renewing() {
		end(errKindsChanged)
	}
}

// missingKinds lists the kinds without which a pipeline was compiled.
func missingKinds(p *compile.Pipeline) []kinds.Kind {
	return slices.DeleteFunc(kindsOf(p), func(k kinds.Kind) bool { return k.Missing == nil })
}

// describeMissing says which kinds are missing; empty for none.
func describeMissing(p *compile.Pipeline) string {
	var texts []string
	for _, k := range missingKinds(p) {
		texts = append(texts, k.Missing.Error())
	}
	slices.Sort(texts)
	return strings.Join(slices.Compact(texts), "; ")
}

// whyMissing tells the reasons apart that matter to what waits for a kind: no object of it exists, it is served in another
// version, or the API server could not be asked.
func whyMissing(err error) string {
	switch {
	case err == nil:
		return ""
	case kinds.IsNotDefined(err):
		return "gone"
	case errors.Is(err, kinds.ErrUnknown):
		return err.Error()
	}
	return notKnown
}

const notKnown = "not known"

// kindGone reports whether the API server no longer serves a kind. The watch tells of the upstream's.
func (s *session) kindGone(live context.Context) bool {
	return slices.ContainsFunc(kindsOf(s.pipeline), func(k kinds.Kind) bool {
		if k.Missing != nil || k.GVK == s.pipeline.Upstream.GVK {
			return false
		}
		_, err := s.engine.cluster.Served(live, k.GVK)
		return errors.Is(err, kinds.ErrUnknown)
	})
}

// misreads reports whether a kind that the config reads has changed so that the config does not compile. Then even the last good
// config would see values that the API server has dropped as removed by a user, and delete what follows from them.
func (s *session) misreads() bool {
	if !s.schemasChanged(readKinds(s.pipeline)) {
		return false
	}
	_, reason, _ := s.generation.compile()
	return reason == state.ReasonConfigRefused
}

// schemasChanged reports whether one of the custom kinds differs from the one that the pipeline was compiled against. One that the
// API server does not describe now has not changed.
func (s *session) schemasChanged(list []kinds.Kind) bool {
	for _, k := range list {
		if !k.IsCustom() || k.Missing != nil {
			continue
		}
		s.engine.cluster.Invalidate(k.GVK)
		now, err := s.engine.cluster.Kind(k.GVK)
		if err != nil || now.Schema == nil {
			continue
		}
		if now.GVR != k.GVR || now.HasStatus != k.HasStatus || now.Namespaced != k.Namespaced || !reflect.DeepEqual(now.Schema, k.Schema) {
			s.operator.log.Info("the definition of a kind has changed: compiling the config again", "kind", k.GVK.GroupKind().String())
			return true
		}
	}
	return false
}

// requirementsLost reports whether the API server lacks a version that the config requires, and had it when the config was
// compiled. The compiled config goes on while it is compiled again, and refused.
func (s *session) requirementsLost() bool {
	if s.operator.renewing() {
		return false
	}
	list, err := compile.Requirements(s.generation.file, compile.Options{Kinds: s.engine.cluster, Version: s.engine.version()})
	return err == nil && slices.ContainsFunc(list, func(r compile.Requirement) bool { return r.Unmet != nil })
}

// renew compiles the config of g, which is active, again, and has it take over from itself, as a changed config does. It
// returns false if g is not active, or only deletes, which another one cannot do beside it, or a changed config is starting.
func (o *runner) renew(g *generation) bool {
	ctx := o.engine.runningContext()
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.current != g || o.next != nil || !g.established || g.session.pipeline.OnlyDeletes {
		return false
	}
	o.next = o.newGeneration(g.file)
	o.next.renewed = true
	o.next.start(ctx, nil)
	return true
}

// renewing reports whether that is under way.
func (o *runner) renewing() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.next != nil && o.next.renewed
}

// runningContext is the context of operators.
func (e *Engine) runningContext() context.Context {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.running
}
