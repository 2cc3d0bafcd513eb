package engine

import (
	"context"
	"errors"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/pkg/kinds"
)

// errWatchCut is told of a watch that ended long before its time: the API server ends those of a kind whose definition has
// changed, and all when it stops.
var errWatchCut = errors.New("the watch ended before its time")

// schemaChecks is how often schemas are read after a sign that one has changed, at growing intervals: the API server
// publishes a schema some time after it goes by it. maxSchemaWait bounds how long signs wait that came to nothing before.
const (
	schemaChecks  = 6
	maxSchemaWait = 5 * time.Minute
)

// doubtSchemas has the schemas of custom kinds read again soon. It does not wait.
func (s *session) doubtSchemas() {
	select {
	case s.doubts <- struct{}{}:
	default: // they will be
	}
}

// isCustom tells whether the kind comes from a definition, which can change while this process runs.
func isCustom(k kinds.Kind) bool { return !kinds.IsBuiltin(k.GVK.GroupKind()) }

// watchesCustom tells whether a resource is one of the session's custom kinds.
func (s *session) watchesCustom(gvr schema.GroupVersionResource) bool {
	for _, k := range kindsOf(s.pipeline) {
		if k.GVR == gvr {
			return isCustom(k)
		}
	}
	return false
}

// followSchemas compiles the config anew, beside the session, once the schema of a kind is another than the one that it was
// compiled against. Without a sign of that it makes no request. It goes on when that is done, since the new session may be
// withdrawn before it takes over.
func (s *session) followSchemas(live context.Context) {
	interval := s.engine.options.DiscoveryInterval
	wait, last := interval, time.Time{}
	for {
		select {
		case <-live.Done():
			return
		case <-s.doubts:
		}
		if time.Since(last) > 2*wait {
			wait = interval
		}
		s.readSchemas(live, interval)
		pause(live, wait)
		wait, last = min(2*wait, maxSchemaWait), time.Now()
	}
}

// readSchemas reads the schemas several times, until another session is to take over, or live is done.
func (s *session) readSchemas(live context.Context, interval time.Duration) {
	for i := range schemaChecks {
		if pause(live, interval<<i); live.Err() != nil {
			return
		}
		if !s.schemasChanged() {
			continue
		}
		if s.operator.renew(s.generation) {
			return
		}
		s.doubtSchemas()
	}
}

// schemasChanged tells whether a custom kind is another than the one that the pipeline was compiled against. One that the API
// server does not tell of now has not changed: its watch ends if it is gone.
func (s *session) schemasChanged() bool {
	for _, k := range kindsOf(s.pipeline) {
		if !isCustom(k) {
			continue
		}
		s.engine.cluster.Invalidate(k.GVK)
		now, err := s.engine.cluster.Kind(k.GVK)
		if err != nil || now.Schema == nil {
			continue
		}
		if now.HasStatus != k.HasStatus || now.Namespaced != k.Namespaced || !reflect.DeepEqual(now.Schema, k.Schema) {
			s.log.Info("the definition of a kind has changed: the config is compiled anew", "kind", k.GVK.GroupKind().String())
			return true
		}
	}
	return false
}

// renew has the config of g, which is at work, take over from itself, compiled anew, as a changed config does. It returns
// false where g is not at work or a changed config is on its way.
func (o *operator) renew(g *generation) bool {
	ctx := o.engine.runningContext()
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.current != g || o.next != nil || !g.established {
		return false
	}
	o.next = o.newGeneration(g.file)
	o.next.renewed = true
	o.next.start(ctx, nil)
	return true
}

// runningContext is what operators run under.
func (e *Engine) runningContext() context.Context {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.running
}
