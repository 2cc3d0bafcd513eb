package activation

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/go-logr/logr"

	"github.com/corollary-dev/corollary/pkg/activation/locks"
	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/config/lock"
	"github.com/corollary-dev/corollary/pkg/leadership"
)

// Activation is this cluster's part in an activation: standby, until it is active.
type Activation struct {
	*leadership.Tenure
	Name     string
	identity string
	// process is the name of this process in the lock.
	process string
	take    func(ctx context.Context, may <-chan struct{}, work func(context.Context) error) error
	log     logr.Logger
}

// New prepares to take part. It sends no request.
func New(f *load.ActivationFile, log logr.Logger) (*Activation, error) {
	log = log.WithName("activation").WithValues("activation", f.Metadata.Name)
	a := &Activation{Name: f.Metadata.Name, identity: f.Identity, log: log}
	if f.DNS != nil {
		a.poll(f)
		return a, nil
	}
	store, err := locks.Open(f)
	if err == nil {
		err = a.elect(f, store)
	}
	if err != nil {
		return nil, fmt.Errorf("preparing activation %s: %w", a.Name, err)
	}
	return a, nil
}

// poll takes part by a name in DNS.
func (a *Activation) poll(f *load.ActivationFile) {
	name, ask := locks.OpenName(f)
	t := timings(f)
	t.RetryPeriod = time.Duration(f.DNS.Interval)
	p := leadership.NewPoll(leadership.PollOptions{Name: name, Timings: t,
		Again: f.OnLost == lock.OnLostStandby, Log: a.log,
		Ask: func(ctx context.Context) (bool, string, error) {
			begin := time.Now()
			named, what, err := ask(ctx)
			observeRenewal(a.Name, time.Since(begin), err)
			return named, what, err
		}})
	a.Tenure, a.take, a.process = p.Tenure, p.RunAfter, f.Identity
}

// elect takes part by a lock.
func (a *Activation) elect(f *load.ActivationFile, store leadership.Store) error {
	o := leadership.Options{Identity: f.Identity, Timings: timings(f),
		Again: f.OnLost == lock.OnLostStandby, HandsOver: true,
		Log: a.log}
	w := &watched{Store: store, name: a.Name, identity: f.Identity, timings: o.Timings, log: a.log}
	o.Waiting = func(holder string, lasts time.Duration) {
		name, _ := leadership.HolderOf(holder)
		a.log.Info("another cluster is active", "holder", name, "unlessItIsNotRenewedFor", lasts.String())
	}
	e, err := leadership.NewElection(w, o)
	if err != nil {
		return err
	}
	w.self = e.Self()
	a.Tenure, a.take, a.process = e.Tenure, e.RunAfter, e.Self()
	return nil
}

func timings(f *load.ActivationFile) leadership.Timings {
	return leadership.Timings{LeaseDuration: time.Duration(f.LeaseDuration), RenewDeadline: time.Duration(f.RenewDeadline),
		RetryPeriod: time.Duration(f.RetryPeriod)}
}

// identityOf is the identity of the cluster whose process is named in a lock.
func identityOf(holder string) string {
	name, _ := leadership.HolderOf(holder)
	if i := strings.LastIndexByte(name, '_'); i >= 0 {
		return name[:i]
	}
	return name
}

// Run runs work, which is a standby while another cluster is active. The lock is taken once may is closed, and given
// back once work has returned. It returns what work returns; but a *leadership.LostError if the lock was lost and
// onLost is Exit.
func (a *Activation) Run(ctx context.Context, may <-chan struct{}, work func(context.Context) error) error {
	watching, stop := context.WithCancel(ctx)
	defer stop()
	forgetMetrics(a.Name)
	defer forgetMetrics(a.Name)
	go a.report(watching)
	err := a.take(ctx, may, work)
	if err != nil {
		return fmt.Errorf("activation %s: %w", a.Name, err)
	}
	return nil
}

// report sets the metrics and logs whenever this cluster becomes active or standby.
func (a *Activation) report(ctx context.Context) {
	for {
		setActive(a.Name, a.identity, false, leadership.NoToken)
		acting, done, ok := a.Act(ctx)
		if !ok {
			return
		}
		token := a.Token()
		setActive(a.Name, a.identity, true, token)
		a.log.Info("this cluster is active", "identity", a.identity, "token", token.String(), "holder", a.process)
		<-acting.Done()
		if done(); ctx.Err() != nil {
			return
		}
		a.log.Info("this cluster is a standby", "identity", a.identity, "lastToken", token.String())
	}
}
