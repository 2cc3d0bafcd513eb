package leadership

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// errReleased is how a tenure ends that was given up.
var errReleased = errors.New("the Lease was released")

// Options say which Lease an election is about, and how a process takes part in it.
type Options struct {
	Namespace, Name string
	Timings
	// Role tells in the Lease what kind of process holds it; it may be empty.
	Role string
	// Once is for a process that has one thing to do. It reads the Lease while it waits for it, and needs no right to watch
	// it; and it ends where the API server refuses it the Lease (401, 403), instead of waiting for rights.
	Once bool
	// Record writes an event about the Lease: that this process has become the leader. It may be nil.
	Record func(note string)
	// Waiting is called whenever this process begins to wait for another holder, and with how long the Lease lasts if that
	// holder does not renew it. It may be nil.
	Waiting func(holder string, lasts time.Duration)
	Log     logr.Logger
}

// Election is one process' part in an election: it stands by, leads once at most, and then ends.
type Election struct {
	options Options
	tenure  *tenure
	standby *standby
	lock    *lock
}

// New prepares an election; cfg is how the Lease is reached. It sends no request.
func New(cfg *rest.Config, o Options) (*Election, error) {
	if problem := o.Problem(); problem != "" {
		return nil, errors.New(problem)
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("naming this process: %w", err)
	}
	self := host + "_" + string(uuid.NewUUID())
	if o.Role != "" {
		self = host + "_" + o.Role + "_" + string(uuid.NewUUID())
	}
	cfg = rest.AddUserAgent(rest.CopyConfig(cfg), "leader-election")
	watching, err := coordinationclient.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("preparing the connection: %w", err)
	}
	cfg.Timeout = max(o.RenewDeadline/2, time.Second) // one request that hangs shall not cost the Lease
	leases, err := coordinationclient.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("preparing the connection: %w", err)
	}
	return newElection(o, self, leases, watching), nil
}

// newElection takes part as self, by a client with a time limit and by one that may watch.
func newElection(o Options, self string, leases, watching coordinationclient.LeasesGetter) *Election {
	e := &Election{options: o, tenure: newTenure(o.Namespace+"/"+o.Name, o.RenewDeadline, o.Log)}
	e.standby = &standby{reads: leases.Leases(o.Namespace), watches: watching.Leases(o.Namespace), name: o.Name, self: self,
		retry: o.RetryPeriod, once: o.Once, waiting: o.Waiting, log: o.Log}
	e.lock = &lock{tenure: e.tenure, standby: e.standby, record: o.Record, Interface: &resourcelock.LeaseLock{
		LeaseMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name}, Client: leases,
		LockConfig: resourcelock.ResourceLockConfig{Identity: self}}}
	return e
}

// Elected is closed when this process has become the leader.
func (e *Election) Elected() <-chan struct{} { return e.tenure.elected }

// HadOtherLeader reports, once this process leads, whether it saw another leader before.
func (e *Election) HadOtherLeader() bool { return e.standby.sawLeader }

// Wait returns true as soon as this process may write: at once while it leads, and while it is unsure whether it still
// does, when it is sure again. It returns false once ctx is done.
func (e *Election) Wait(ctx context.Context) bool { return e.tenure.wait(ctx) }

// Fence returns a configuration whose clients write only while this process leads: outside of that a write fails with a
// *RefusedError, as if the API server could not be reached. Reads and dry runs always pass. Connections that a write may
// be on are cut when the renew deadline passes. The Lease itself needs a client without it.
func (e *Election) Fence(cfg *rest.Config) *rest.Config { return e.fence(cfg, false) }

// FenceEvents is Fence for what a standby may write too, but not a process that has lost the lead.
func (e *Election) FenceEvents(cfg *rest.Config) *rest.Config { return e.fence(cfg, true) }

func (e *Election) fence(cfg *rest.Config, early bool) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	cfg.Dial = e.tenure.dialing(cfg)
	above := cfg.WrapTransport
	cfg.WrapTransport = func(next http.RoundTripper) http.RoundTripper {
		var fenced http.RoundTripper = &gate{tenure: e.tenure, next: next, early: early}
		if above != nil {
			fenced = above(fenced)
		}
		return fenced
	}
	return cfg
}

// Run runs work while this process stands by and then leads. Work begins at once: whatever must wait for the lead waits for
// Elected. The context of work ends with ctx, or when the Lease is lost. The Lease is given back once work has returned, when
// nothing is under way any more; not before that, even if ctx is done.
//
// It returns what work returns; but if the election has ended the context of work, a *LostError or, with Once, a
// *DeniedError.
func (e *Election) Run(ctx context.Context, work func(context.Context) error) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	drained, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- e.campaign(ctx, drained)
		stop()
	}()
	err := work(ctx)
	complete := ctx.Err() == nil // what becomes of the Lease is nobody's concern any more
	stop()
	close(drained)
	if failed := <-ended; failed != nil && !complete {
		return failed
	}
	return err
}

// campaign stands by until the Lease is free or ctx is done. Once it leads, it renews the Lease until drained is closed, and
// gives it back; ctx no longer matters then.
func (e *Election) campaign(ctx context.Context, drained <-chan struct{}) error {
	if _, err := e.elector(); err != nil { // metrics tell of one that it does not lead, from the beginning on
		return err
	}
	leading, stop := context.WithCancel(logr.NewContext(context.WithoutCancel(ctx), e.options.Log))
	defer stop()
	go func() {
		select {
		case <-drained:
			stop()
		case <-leading.Done():
		}
	}()
	for e.standby.wait(ctx) {
		if err := e.lead(leading); err != nil || e.tenure.begun() {
			return err
		}
		if e.standby.denied != nil {
			break
		}
		if e.lock.failed {
			e.standby.pause(ctx, e.options.RetryPeriod)
		}
	}
	if e.standby.denied != nil {
		return &DeniedError{Lease: e.tenure.lease, Err: e.standby.denied}
	}
	return nil
}

// lead has the elector take the Lease, and renew it until ctx is done. Where the Lease cannot be taken it returns at once.
func (e *Election) lead(ctx context.Context) error {
	attempt, abandon := context.WithCancel(ctx)
	defer abandon()
	e.lock.abandon, e.lock.failed = abandon, false
	elector, err := e.elector()
	if err != nil {
		return err
	}
	elector.Run(attempt)
	if !e.tenure.begun() {
		return nil
	}
	if ctx.Err() == nil {
		e.tenure.end(&LostError{Lease: e.tenure.lease, Deadline: e.options.RenewDeadline, Err: e.lock.refused})
	}
	if lost := e.tenure.lost(); !errors.Is(lost, errReleased) {
		return lost
	}
	return nil
}

// elector is client-go's, which takes the Lease and renews it, for one attempt.
func (e *Election) elector() (*leaderelection.LeaderElector, error) {
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock:          e.lock,
		LeaseDuration: e.options.LeaseDuration, RenewDeadline: e.options.RenewDeadline, RetryPeriod: e.options.RetryPeriod,
		ReleaseOnCancel: true,
		Name:            e.options.Name,
		// The tenure says who may write, and the caller that the process ends.
		Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: func(context.Context) {}, OnStoppedLeading: func() {}},
	})
	if err != nil {
		return nil, fmt.Errorf("preparing the elector: %w", err)
	}
	return elector, nil
}
