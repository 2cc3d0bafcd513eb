package engine

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/pipeline"
)

// errKindsChanged ends a session whose kinds are others than the ones that its config was compiled against.
var errKindsChanged = errors.New("a kind of the config was installed, removed or changed")

// schemaChecks is how often kinds are asked for after a sign that one has changed, at growing intervals: the API server
// publishes a schema some time after it goes by it. maxSchemaWait bounds how long signs wait that came to nothing before.
const (
	schemaChecks  = 6
	maxSchemaWait = 5 * time.Minute
)

// RecheckKinds has the kinds asked for again soon. It does not wait.
func (s *session) RecheckKinds() {
	select {
	case s.kindChecks <- struct{}{}:
	default: // they will be
	}
}

// watchesCustom tells whether a resource is one of the session's custom kinds.
func (s *session) watchesCustom(gvr schema.GroupVersionResource) bool {
	for _, k := range kindsOf(s.pipeline) {
		if k.GVR == gvr {
			return k.IsCustom()
		}
	}
	return false
}

// watchKinds compiles the config anew, beside the session, once a kind has gone or its schema is another than the one that it
// was compiled against. Without a sign of that it makes no request. It goes on when that is done, since the new session may be
// withdrawn before it takes over.
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
		pause(live, wait)
		wait, last = min(2*wait, maxSchemaWait), time.Now()
	}
}

// checkKinds asks for the kinds several times, until another session is to take over, or live is done.
func (s *session) checkKinds(live context.Context, interval time.Duration, end context.CancelCauseFunc) {
	for i := range schemaChecks {
		if pause(live, interval<<i); live.Err() != nil {
			return
		}
		switch {
		case s.kindGone(live):
			s.startOver(end)
			return
		case !s.schemasChanged() && !s.requirementsLost():
		case s.pipeline.OnlyDeletes:
			s.startOver(end)
			return
		case s.operator.renew(s.generation):
			return
		default:
			s.RecheckKinds()
		}
	}
}

// awaitKinds asks for the kinds that are missing, and compiles the config anew once one of them is served, or missing for
// another reason.
func (s *session) awaitKinds(live context.Context, end context.CancelCauseFunc) {
	missing := missingKinds(s.pipeline)
	if len(missing) == 0 {
		return
	}
	for wait := range s.engine.waits() {
		if pause(live, wait); live.Err() != nil {
			return
		}
		if slices.ContainsFunc(missing, s.isFound) {
			s.startOver(end)
		}
	}
}

// isFound tells whether a missing kind can be compiled against now, or is known to be missing for another reason. It asks what
// compiling asks: a kind that is served and whose schema cannot be read is still missing then.
func (s *session) isFound(k kinds.Kind) bool {
	s.engine.cluster.Invalidate(k.GVK)
	_, err := s.engine.cluster.Kind(k.GVK)
	now := whyMissing(err)
	return now != notKnown && now != whyMissing(k.Missing)
}

// startOver compiles the config anew: beside this session, or after its end where it does not work yet, or a changed config
// waits for something.
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
func missingKinds(p *pipeline.Pipeline) []kinds.Kind {
	return slices.DeleteFunc(kindsOf(p), func(k kinds.Kind) bool { return k.Missing == nil })
}

// describeMissing says which kinds are missing; empty where none is.
func describeMissing(p *pipeline.Pipeline) string {
	var texts []string
	for _, k := range missingKinds(p) {
		texts = append(texts, k.Missing.Error())
	}
	slices.Sort(texts)
	return strings.Join(slices.Compact(texts), "; ")
}

// whyMissing tells apart what makes a difference to what waits for a kind: no object of it exists, it is served in another
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

// kindGone tells whether the API server says of a kind that it no longer serves it. Of the upstream's, the watch tells.
func (s *session) kindGone(live context.Context) bool {
	return slices.ContainsFunc(kindsOf(s.pipeline), func(k kinds.Kind) bool {
		if k.Missing != nil || k.GVK == s.pipeline.Upstream.GVK {
			return false
		}
		_, err := s.engine.cluster.Served(live, k.GVK)
		return errors.Is(err, kinds.ErrUnknown)
	})
}

// schemasChanged tells whether a custom kind is another than the one that the pipeline was compiled against. One that the API
// server does not tell of now has not changed.
func (s *session) schemasChanged() bool {
	for _, k := range kindsOf(s.pipeline) {
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

// requirementsLost tells whether the API server lacks a version that the config requires, and had it when the config was compiled. The
// config that was compiled then goes on while it is compiled anew, and refused.
func (s *session) requirementsLost() bool {
	if s.operator.renewing() {
		return false
	}
	list, err := pipeline.Requirements(s.generation.file, pipeline.Options{Kinds: s.engine.cluster, Version: s.engine.version()})
	return err == nil && slices.ContainsFunc(list, func(r pipeline.Requirement) bool { return r.Unmet != nil })
}

// renew has the config of g, which is at work, take over from itself, compiled anew, as a changed config does. It returns
// false where g is not at work, or only deletes, which another one cannot do beside it, or a changed config is on its way.
func (o *operator) renew(g *generation) bool {
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

// renewing tells whether that is under way.
func (o *operator) renewing() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.next != nil && o.next.renewed
}

// runningContext is what operators run under.
func (e *Engine) runningContext() context.Context {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.running
}
