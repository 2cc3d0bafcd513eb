// Package fence has the clients and events of operators that follow an activation: they write only while this cluster
// is active.
package fence

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/corollary-dev/corollary/pkg/informers/connections"
	"github.com/corollary-dev/corollary/pkg/leadership"
)

// Activations makes what operators write by that follow an activation: clients that write only during its tenure.
// Watches are those of all operators.
type Activations struct {
	cfg *rest.Config

	recording context.Context // of events
	end       context.CancelFunc

	mu   sync.Mutex
	made map[*leadership.Tenure]*Fenced
}

// Fenced are the connections and the events of one activation.
type Fenced struct {
	Connections *connections.Connections
	activation  *leadership.Tenure
	events      events.EventBroadcaster
}

// NewActivations returns those of an API server.
func NewActivations(cfg *rest.Config) *Activations {
	a := &Activations{cfg: cfg, made: map[*leadership.Tenure]*Fenced{}}
	a.recording, a.end = context.WithCancel(context.Background())
	return a
}

// Stop ends the recording of events. Later ones are dropped.
func (a *Activations) Stop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, f := range a.made {
		f.events.Shutdown()
	}
	a.end()
}

// WithSharedRate is a configuration whose clients share one rate limit, if there is one.
func WithSharedRate(cfg *rest.Config) *rest.Config {
	if cfg.RateLimiter != nil || cfg.QPS <= 0 {
		return cfg
	}
	cfg = rest.CopyConfig(cfg)
	cfg.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(cfg.QPS, cfg.Burst)
	return cfg
}

// Of returns what belongs to a tenure. It sends no request.
func (a *Activations) Of(t *leadership.Tenure) *Fenced {
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
	f := &Fenced{Connections: connections, activation: t,
		events: events.NewBroadcaster(&events.EventSinkImpl{Interface: client.EventsV1()})}
	_ = f.events.StartRecordingToSinkWithContext(a.recording) // it fails only after Shutdown
	a.made[t] = f
	return f
}

// Recorder records events by that name while the cluster is active.
func (f *Fenced) Recorder(name string) events.EventRecorder {
	return activeRecorder{Recorder{f.events.NewRecorder(scheme.Scheme, name)}, f.activation}
}

// activeRecorder drops the events of a standby: an event is an object that someone has to write.
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
