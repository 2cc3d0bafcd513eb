package leadership

import (
	"context"
	"time"

	"github.com/go-logr/logr"
)

// PollOptions say how a process asks whether it may write.
type PollOptions struct {
	// Name says what is asked, as in "DNS name active.example.com".
	Name string
	Timings
	// Ask reports whether the answer names this process, and what it names. An error says that there was no answer.
	Ask func(ctx context.Context) (named bool, what string, err error)
	// Again is for a process that waits on standby again once it is not named any more. Else it ends.
	Again bool
	Log   logr.Logger
}

// Poll is one process' part where there is no lock to take: something outside names who may write, and is asked every
// RetryPeriod. There is no token, and nothing excludes that two processes are named at a time.
//
// The tenure begins once all answers have named this process for LeaseDuration, and at least two in a row: until then,
// a process that was named before and gets no answer has stopped, at its RenewDeadline. It ends at the first answer
// that does not.
type Poll struct {
	*Tenure
	options PollOptions

	// holds is true during a tenure. Before one, row counts the answers in a row that named this process; the first and
	// the last of them were asked for at first and last.
	holds       bool
	row         int
	first, last Instant
	// reported is what was logged last while this process waits on standby.
	reported string
}

// NewPoll prepares to ask. It asks nothing.
func NewPoll(o PollOptions) *Poll {
	return &Poll{Tenure: NewTenure(o.Name, o.RenewDeadline, o.Log), options: o}
}

// RunAfter runs work, and asks once may is closed: see Election.RunAfter. There is nothing to give back.
func (p *Poll) RunAfter(ctx context.Context, may <-chan struct{}, work func(context.Context) error) error {
	return runBeside(ctx, may, p.campaign, work)
}

// campaign asks until drained is closed, or this process is not named any more and does not stand by again.
func (p *Poll) campaign(ctx context.Context, drained <-chan struct{}) error {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	defer p.End(errReleased)
	go func() {
		select {
		case <-drained:
			stop()
		case <-ctx.Done():
		}
	}()
	ticks := time.NewTicker(p.options.RetryPeriod)
	defer ticks.Stop()
	for {
		if lost := p.ask(ctx); lost != nil {
			return lost
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticks.C:
		}
	}
}

// ask asks once. It returns why the part of this process ends, if it does.
func (p *Poll) ask(ctx context.Context) error {
	sent := p.clock()
	asking, cancel := context.WithTimeout(ctx, max(p.options.RenewDeadline/2, time.Second))
	defer cancel()
	named, what, err := p.options.Ask(asking)
	if ctx.Err() != nil {
		return nil
	}
	if p.holds {
		return p.confirm(sent, named, what, err)
	}
	switch {
	case err != nil:
		p.row = 0
		p.report("no answer says which cluster is active, will retry", "error", err.Error())
	case !named:
		p.row = 0
		p.report("another cluster is named", "named", what)
	default:
		p.count(sent)
	}
	return nil
}

// count counts an answer that names this process while it waits on standby. What was answered during a long gap is not
// known, so then it counts as the first.
func (p *Poll) count(sent Instant) {
	if p.row == 0 || sent.since(p.last) >= p.options.RenewDeadline {
		p.row, p.first = 0, sent
		p.report("this cluster is named, and is active once that has lasted", "leaseDuration",
			p.options.LeaseDuration.String())
	}
	p.row, p.last = p.row+1, sent
	if p.row >= 2 && sent.atLeast(p.first) >= p.options.LeaseDuration {
		p.holds, p.reported = true, ""
		p.Begin(NoToken, true)
		p.Renew(sent)
	}
}

// confirm takes in what was answered during a tenure. It returns why the part of this process ends, if it does.
func (p *Poll) confirm(sent Instant, named bool, what string, err error) error {
	lost := &LostError{Lock: p.name, Deadline: p.options.RenewDeadline}
	switch {
	case err == nil && !named:
		lost.Holder, lost.Early = what, p.MayWrite() == nil
	case p.MayWrite() != nil:
		lost.Err = err
	case err == nil:
		p.Renew(sent)
		return nil
	default:
		return nil // the deadline decides
	}
	p.End(lost)
	p.holds, p.row = false, 0
	if !p.options.Again {
		return lost
	}
	p.options.Log.Info("standing by again", "because", lost.Error())
	p.Restart()
	return nil
}

// report logs what a standby finds, once until it finds something else.
func (p *Poll) report(message string, keysAndValues ...any) {
	text := message
	for _, v := range keysAndValues {
		if s, ok := v.(string); ok {
			text += s
		}
	}
	if text != p.reported {
		p.reported = text
		p.options.Log.Info(message, keysAndValues...)
	}
}
