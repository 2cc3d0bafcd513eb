package engine

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/corollary-dev/corollary/pkg/engine/state"
	"github.com/corollary-dev/corollary/pkg/engine/work"
	"github.com/corollary-dev/corollary/pkg/informers"
	"github.com/corollary-dev/corollary/pkg/informers/connections"
	"github.com/corollary-dev/corollary/pkg/leadership"
	"github.com/corollary-dev/corollary/pkg/operator"
)

// activations makes what operators write by that follow an activation: clients that write only during its tenure. Watches are
// those of all operators.
type activations struct {
	cfg *rest.Config

	recording context.Context // of events
	end       context.CancelFunc

	mu   sync.Mutex
	made map[*leadership.Tenure]*fenced
}

// fenced are the connections and the events of one activation.
type fenced struct {
	connections *connections.Connections
	events      events.EventBroadcaster
}

func newActivations(cfg *rest.Config) *activations {
	a := &activations{cfg: cfg, made: map[*leadership.Tenure]*fenced{}}
	a.recording, a.end = context.WithCancel(context.Background())
	return a
}

// stop ends the recording of events. Later ones are dropped.
func (a *activations) stop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, f := range a.made {
		f.events.Shutdown()
	}
	a.end()
}

// withSharedRate is a configuration whose clients share one rate limit, if there is one.
func withSharedRate(cfg *rest.Config) *rest.Config {
	if cfg.RateLimiter != nil || cfg.QPS <= 0 {
		return cfg
	}
	cfg = rest.CopyConfig(cfg)
	cfg.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(cfg.QPS, cfg.Burst)
	return cfg
}

// of returns what belongs to a tenure. It sends no request.
func (a *activations) of(t *leadership.Tenure) *fenced {
	a.mu.Lock()
	defer a.mu.Unlock()
	if f, ok := a.made[t]; ok {
		return f
	}
	cfg := t.Fence(a.cfg)
	connections, err := connections.NewConnections(cfg)
	if err != nil { // cannot happen: those without the fence were made of the same configuration
		panic("preparing the connections of an activation: " + err.Error())
	}
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil { // as above
		panic("preparing the events of an activation: " + err.Error())
	}
	f := &fenced{connections: connections, events: events.NewBroadcaster(&events.EventSinkImpl{Interface: client.EventsV1()})}
	_ = f.events.StartRecordingToSinkWithContext(a.recording) // it fails only after Shutdown
	a.made[t] = f
	return f
}

// connectionsOf are the connections by which a config is carried out.
func (e *Engine) connectionsOf(g *generation) *connections.Connections {
	if g.activation == nil {
		return e.connections
	}
	return e.activations.of(g.activation).connections
}

// recorderOf is where the events of a config go.
func (e *Engine) recorderOf(g *generation) events.EventRecorder {
	if g.activation == nil {
		return e.recorder(g.operator.name)
	}
	events := e.activations.of(g.activation).events
	return activeRecorder{Recorder{events.NewRecorder(scheme.Scheme, g.operator.name)}, g.activation}
}

// activeRecorder drops the events of a standby: an event is an object that somebody has to write.
type activeRecorder struct {
	events.EventRecorder
	activation *leadership.Tenure
}

// Eventf implements events.EventRecorder.
func (r activeRecorder) Eventf(regarding, related runtime.Object, eventType, reason, action, note string, args ...any) {
	if r.activation.Active() {
		r.EventRecorder.Eventf(regarding, related, eventType, reason, action, note, args...)
	}
}

// isActive reports whether this cluster may act for the config now.
func (s *session) isActive() bool {
	return s.generation.activation == nil || s.generation.activation.Active()
}

// afterLoss is after how long an upstream is looked at again whose turn came when this cluster had just ceased to be active.
const afterLoss = time.Second

// actWhileActive reconciles whenever this cluster is active, and decides without acting while it is not, until live is done.
func (s *session) actWhileActive(live context.Context) {
	t := s.generation.activation
	if t == nil {
		s.setReason(state.Working(s.pipeline), "")
		s.reconcileWhile(live, live)
		return
	}
	for s.waitForActivation(live) {
		acting, done, ok := t.Act(live)
		if !ok {
			return
		}
		if t.Preceded() {
			s.actAfterAnother(acting)
		}
		s.setReason(state.Working(s.pipeline), "")
		s.reconcileWhile(live, acting)
		if done(); live.Err() != nil {
			return
		}
	}
}

// waitForActivation returns true once this cluster is active, and false once live is done. Meanwhile decisions are made, and
// counted, but not carried out. Whatever was counted for guard before it may have changed.
func (s *session) waitForActivation(live context.Context) bool {
	for !s.isActive() {
		s.setReason(state.ReasonStandby, "")
		s.beginStandingBy(live)
		s.Add(informers.PriorityBulk, 0, s.cache.Candidates(s.reconciler)...)
		if !s.generation.activation.Wait(live) {
			return false
		}
		s.pool.Pass(work.Interrupted, nil)
		if !s.passGuard(live) {
			return false
		}
	}
	return live.Err() == nil
}

// standBy is what workers do while another process or cluster acts. Where this process would act if its cluster were the active
// one, decisions are made.
func (s *session) standBy(ctx context.Context, ref operator.Ref) (after time.Duration) {
	if s.generation.activation != nil && s.engine.electedAlready() {
		return s.reconciler.Rehearse(ctx, ref)
	}
	return s.reconciler.StandBy(ctx, ref)
}
