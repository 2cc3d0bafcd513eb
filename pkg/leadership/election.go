package leadership

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
)

// errReleased is how a tenure ends that was given up, errHandedOver if that was asked for.
var (
	errReleased   = errors.New("the lock was released")
	errHandedOver = errors.New("the lock was handed over")
)

// Options say how a process takes part in an election.
type Options struct {
	// Namespace and Name are those of the Lease that New is about; Name is a label of client-go's metrics.
	Namespace, Name string
	Timings
	// Identity begins the name by which the lock says who holds it; by default the name of the machine.
	Identity string
	// Role is written into the lock and says what kind of process holds it; it may be empty.
	Role string
	// Self, if it is set, is the whole name by which the lock says who holds it.
	Self string
	// Shared is for a lock that all processes of one Self hold together: see shared. Nil for all others.
	Shared *Shared
	// Labels are those of the Lease, if New's Election creates it.
	Labels map[string]string
	// Once is for a process that has one thing to do. It reads the lock while it waits for it, and needs no right to watch
	// it; and it ends where it is refused the lock (401, 403), instead of waiting for rights.
	Once bool
	// Again is for a process that waits on standby again after it has lost the lock. Else it ends.
	Again bool
	// HandsOver is for a process that hands the lock over if the record asks for that.
	HandsOver bool
	// Record writes an event about the lock: that this process has become the leader. It may be nil.
	Record func(note string)
	// Waiting is called whenever this process begins to wait for another holder, and with how long the lock lasts if that
	// holder does not renew it. It may be nil.
	Waiting func(holder string, lasts time.Duration)
	// Renewed is called when another holder is seen to renew the lock: it is alive. It may be nil.
	Renewed func(holder string)
	Log     logr.Logger
}

// Election is one process' part in an election: it waits on standby, leads once at most (but for Options.Again), and
// then ends.
type Election struct {
	*Tenure
	options Options
	standby *standby
	lock    *lock
	shared  *shared // nil if one process holds it alone
}

// New prepares an election by a Lease; cfg is how it is reached. It sends no request.
func New(cfg *rest.Config, o Options) (*Election, error) {
	timeout := max(o.RenewDeadline/2, time.Second) // one request that hangs shall not cost the Lease
	store, err := newLease(cfg, o.Namespace, o.Name, timeout)
	if err != nil {
		return nil, err
	}
	store.labels = o.Labels
	return NewElection(store, o)
}

// NewElection prepares an election by a record. It sends no request.
func NewElection(store Store, o Options) (*Election, error) {
	if problem := o.Problem(); problem != "" {
		return nil, errors.New(problem)
	}
	if o.Self != "" {
		return newElection(store, o, o.Self), nil
	}
	self := o.Identity
	if self == "" {
		host, err := os.Hostname()
		if err != nil {
			return nil, fmt.Errorf("naming this process: %w", err)
		}
		self = host
	}
	if o.Role != "" {
		self += "_" + o.Role
	}
	return newElection(store, o, self+"_"+string(uuid.NewUUID())), nil
}

// newElection takes part as self.
func newElection(store Store, o Options, self string) *Election {
	e := &Election{Tenure: NewTenure(store.Describe(), o.RenewDeadline, o.Log), options: o}
	e.standby = &standby{store: store, self: self, retry: o.RetryPeriod, lease: o.LeaseDuration, once: o.Once,
		waiting: o.Waiting, renewed: o.Renewed, log: o.Log}
	if o.Shared != nil {
		e.shared = &shared{Shared: *o.Shared, wait: time.Duration(2 * leaderelection.JitterFactor * float64(o.RetryPeriod))}
	}
	e.lock = &lock{store: store, self: self, tenure: e.Tenure, standby: e.standby, record: o.Record,
		handsOver: o.HandsOver, greatest: NoToken,
		shared: e.shared}
	return e
}

// Self is the name of this process in the record.
func (e *Election) Self() string { return e.lock.self }

// Elected is closed when this process has become the leader.
func (e *Election) Elected() <-chan struct{} { return e.elected }

// HadOtherLeader reports, once this process leads, whether it saw another leader before.
func (e *Election) HadOtherLeader() bool { return e.standby.sawLeader }

// Run runs work while this process waits and then leads. Work begins at once: whatever must wait for the lead waits for
// Elected, or for Act. The context of work ends with ctx, or when the lock is lost for good. The lock is given back
// once work has returned, when nothing is under way any more; not before that, even if ctx is done.
//
// It returns what work returns; but if the election has ended the context of work, a *LostError or, with Once, a
// *DeniedError.
func (e *Election) Run(ctx context.Context, work func(context.Context) error) error {
	begun := make(chan struct{})
	close(begun)
	return e.RunAfter(ctx, begun, work)
}

// RunAfter is Run for a process that takes part only once may is closed.
func (e *Election) RunAfter(ctx context.Context, may <-chan struct{}, work func(context.Context) error) error {
	return runBeside(ctx, may, e.campaign, work)
}

// runBeside runs work, and campaign beside it once may is closed. campaign ends when drained is closed, or ctx is done
// before it leads; work when campaign has ended.
func runBeside(ctx context.Context, may <-chan struct{},
	campaign func(ctx context.Context, drained <-chan struct{}) error,
	work func(context.Context) error,
) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	drained, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		var err error
		select {
		case <-ctx.Done():
		case <-may:
			err = campaign(ctx, drained)
		}
		ended <- err
		stop()
	}()
	err := work(ctx)
	complete := ctx.Err() == nil // what becomes of the lock is nobody's concern any more
	stop()
	close(drained)
	if failed := <-ended; failed != nil && !complete {
		return failed
	}
	return err
}

// campaign waits on standby until the lock is free or ctx is done. Once it leads, it renews the lock until drained is
// closed, and gives it back; ctx no longer matters then.
func (e *Election) campaign(ctx context.Context, drained <-chan struct{}) error {
	if _, err := e.elector(); err != nil { // metrics tell of one that it does not lead, from the beginning on
		return err
	}
	leading, stop := context.WithCancel(logr.NewContext(context.WithoutCancel(ctx),
		withoutAttempts(e.options.Log, e.Tenure)))
	defer stop()
	go func() {
		select {
		case <-drained:
			stop()
		case <-leading.Done():
		}
	}()
	for e.standby.wait(ctx) {
		err := e.lead(leading)
		switch {
		case e.lock.leads && (!e.options.Again || leading.Err() != nil):
			return err
		case err != nil && !e.lock.leads:
			return err
		case e.lock.leads:
			e.standAgain(ctx)
		case e.standby.denied != nil:
			return &DeniedError{Lock: e.name, Err: e.standby.denied}
		case e.lock.failure != nil:
			e.standby.logTrouble(ctx, e.lock.failure, "the lock cannot be taken, will retry")
			e.standby.pause(ctx, e.options.RetryPeriod)
		}
	}
	if e.standby.denied != nil {
		return &DeniedError{Lock: e.name, Err: e.standby.denied}
	}
	return nil
}

// standAgain prepares to stand by after the lock was lost. If it was handed over, others come first.
func (e *Election) standAgain(ctx context.Context) {
	if why := e.lost(); why != nil {
		e.options.Log.Info("standing by again", "because", why.Error())
		if errors.Is(why, errHandedOver) {
			defer e.standby.yield(ctx, e.options.LeaseDuration)
		}
	}
	e.standby.forget()
	e.Restart()
}

// lead has the elector take the lock, and renew it until ctx is done. Where the lock cannot be taken it returns at
// once.
func (e *Election) lead(ctx context.Context) error {
	attempt, abandon := context.WithCancel(ctx)
	defer abandon()
	e.lock.begin(abandon)
	elector, err := e.elector()
	if err != nil {
		return err
	}
	elector.Run(attempt)
	if !e.lock.leads {
		return nil
	}
	if ctx.Err() == nil {
		e.End(&LostError{Lock: e.name, Deadline: e.options.RenewDeadline, Err: e.lock.refused})
	}
	if lost := e.lost(); !errors.Is(lost, errReleased) {
		return lost
	}
	return nil
}

// attempts is a log without what the elector says of each attempt: why one failed is logged once, and that another
// process was faster is not a failure.
type attempts struct {
	logr.LogSink
	tenure *Tenure
}

func withoutAttempts(log logr.Logger, t *Tenure) logr.Logger {
	if sink := log.GetSink(); sink != nil {
		return log.WithSink(attempts{sink, t})
	}
	return log
}

// Info implements logr.LogSink.
func (a attempts) Info(level int, message string, keysAndValues ...any) {
	if a.tenure.hasBegun() {
		a.LogSink.Info(level, message, keysAndValues...)
	}
}

// Error implements logr.LogSink.
func (a attempts) Error(err error, message string, keysAndValues ...any) {
	if a.tenure.hasBegun() {
		a.LogSink.Error(err, message, keysAndValues...)
	}
}

// WithValues implements logr.LogSink.
func (a attempts) WithValues(keysAndValues ...any) logr.LogSink {
	return attempts{a.LogSink.WithValues(keysAndValues...), a.tenure}
}

// WithName implements logr.LogSink.
func (a attempts) WithName(name string) logr.LogSink {
	return attempts{a.LogSink.WithName(name), a.tenure}
}

// elector is client-go's, which takes the lock and renews it, for one attempt.
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
