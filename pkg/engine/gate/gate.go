// Package gate holds the changes of a session that guard does not allow until they are confirmed.
package gate

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/engine/loading"
	"github.com/corollary-dev/corollary/pkg/engine/metrics"
	"github.com/corollary-dev/corollary/pkg/engine/work"
	"github.com/corollary-dev/corollary/pkg/guard"
	"github.com/corollary-dev/corollary/pkg/informers"
	"github.com/corollary-dev/corollary/pkg/informers/connections"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/compile"
	"github.com/corollary-dev/corollary/pkg/operator/desired"
	"github.com/corollary-dev/corollary/pkg/rollout"
	"github.com/corollary-dev/corollary/pkg/shards"
	"github.com/corollary-dev/corollary/pkg/source"
)

// Session is whose changes are held.
type Session struct {
	Operator string
	Pipeline *compile.Pipeline
	Cache    *informers.Cache
	// Digest identifies the config, and Confirmed is its guard.confirmed.
	Digest    string
	Confirmed func() string
	// Shards are those of the session, and Owned those of the process; nil without shards.
	Shards *loading.Shards
	Owned  shards.Owned
	// Board is where processes add up what guard counts; nil if each counts by itself.
	Board func(name string) shards.Board
	// Informers watch the ConfigMap that confirms, as Identity.
	Informers *informers.Factory
	Identity  connections.Identity
	// Warn is called once for each change that waits.
	Warn func(text string)
	Log  logr.Logger
}

// Gate counts what a session would change, and holds what is more than guard allows.
type Gate struct {
	Session
	batch guard.Batch
	tally atomic.Pointer[guard.Tally] // of what is counted before the session acts
}

// New returns the gate of a session.
func New(s Session) *Gate { return &Gate{Session: s} }

// IsGuarded reports whether guard may hold anything.
func (g *Gate) IsGuarded() bool { return g.Pipeline.Config.Guard != nil && !g.Pipeline.Observing() }

// host is the session as guard sees it.
func (g *Gate) host() *guard.Host {
	h := &guard.Host{
		Name: g.Operator, Config: g.Pipeline.Config, Existing: g.Cache.CountDownstreams, Confirmed: g.Confirmed, Log: g.Log,
		Confirm: func() guard.Confirmation { return g.Decision(g.Pipeline.Config.Guard.Confirm) },
		Warn:    g.Warn,
		Show: func(waits *guard.Count) {
			if metrics.ForgetGuard(g.Operator); waits != nil {
				metrics.SetGuard(g.Operator, *waits)
			}
		},
	}
	if g.Shards != nil && g.Board != nil {
		h.Processes = &guard.Processes{Board: g.Board(g.Operator), Owned: g.Owned, Config: g.Digest,
			Held: g.Shards.Held, UID: g.uidOf}
	}
	return h
}

// BeginCounting begins to count upstreams, EndCounting forgets what was counted.
func (g *Gate) BeginCounting(refs []operator.Ref) { g.tally.Store(guard.NewTally(refs)) }

// EndCounting ends what BeginCounting has begun.
func (g *Gate) EndCounting() { g.tally.Store(nil) }

// Count counts one upstream by what count returns.
func (g *Gate) Count(
	ref operator.Ref, count func() (c guard.Counted, after time.Duration, failed bool),
) (after time.Duration) {
	var c guard.Counted
	failed, uid := false, g.Cache.UpstreamUID(ref)
	defer func() {
		tally := g.tally.Load()
		if !failed { // also after a panic: what cannot be counted is not acted on either
			tally.Note(ref, c)
		}
		if !g.Shards.MayEnter(uid) { // its shard may have been dropped before that
			tally.Note(ref, guard.Counted{})
		}
	}()
	c, after, failed = count()
	return after
}

// PassOver is for an upstream of a shard that is not loaded, or lost: guard does not wait for it.
func (g *Gate) PassOver(ref operator.Ref, counting bool) {
	if counting {
		g.tally.Load().Note(ref, guard.Counted{})
		return
	}
	g.batch.Note(ref, guard.Counted{}, true)
}

// Open has what changes from now on held, if it has to be. It returns false if all that there is may change at once:
// nothing has to be counted. alone is true if no other session works.
func (g *Gate) Open(alone bool) (counts bool) {
	g.batch.Open(g.Pipeline.HasRows()) // changes from now on may come too late to be counted
	op := g.Pipeline.Config
	return g.host().Processes != nil || op.Guard.MaxChanged != "" || !alone ||
		!guard.NeverHolds(op, g.Cache.CountDownstreams()) || g.mayHideMore()
}

// mayHideMore reports whether guard may hold something if there is all that upstreams record: a watch does not show
// what has other labels, as before a change of the config.
func (g *Gate) mayHideMore() bool {
	if !g.Pipeline.TrustsStatus() { // what nothing records is met by a create alone
		return slices.ContainsFunc(g.Pipeline.Downstreams, func(d *desired.Downstream) bool {
			return d.Config.UpdatePolicy == config.UpdateRecreate || d.HasGenerated()
		}) && len(g.Cache.Upstreams()) > 0
	}
	recorded := 0
	for _, ref := range g.Cache.Upstreams() {
		up, err := g.Cache.Upstream(ref)
		if err != nil {
			return true
		}
		if up == nil {
			continue
		}
		if recorded += len(g.Pipeline.EverRecorded(up)); !guard.NeverHolds(g.Pipeline.Config, recorded) {
			return true
		}
	}
	return false
}

// Pass waits while what is counted is more than guard allows, unless it is confirmed. Upstreams that are to be counted,
// too, are added meanwhile: those that cleansUp concerns, once it is true, and those of shards. show is called with
// what it waits for. It returns false when live is done.
func (g *Gate) Pass(
	live context.Context, cleansUp func() bool, add func(refs []operator.Ref), show func(why guard.State, text string),
) bool {
	tally := g.tally.Load()
	start := guard.NewStart(g.host(), tally)
	for cleans := false; ; {
		if now := cleansUp(); now != cleans { // those that are being deleted were passed over so far
			cleans = now
			add(g.Cache.Upstreams())
		}
		if refs, _ := g.Shards.TakeLoaded(tally.Expect); len(refs) > 0 { // shards that were gained meanwhile
			add(refs)
		}
		why, text := start.Look(live)
		if why == guard.Passed {
			break
		}
		show(why, text)
		if work.Pause(live, poll); live.Err() != nil {
			start.End(live, false)
			return false
		}
	}
	if confirmed := start.End(live, true); confirmed != nil {
		g.batch.NoteConfirmed(confirmed)
	}
	return true
}

// poll is how often it is checked whether what was counted may go on.
const poll = 50 * time.Millisecond

// Join has changes of upstreams held until all of them are counted, JoinRows those of rows that are gone.
func (g *Gate) Join(refs []operator.Ref) { g.batch.Join(refs) }

// JoinRows is Join for rows that are gone.
func (g *Gate) JoinRows(goneRows []operator.Ref, doubt source.Doubt) {
	g.batch.JoinRows(goneRows, doubt)
}

// CountedByGuard implements reconcile.Host.
func (g *Gate) CountedByGuard(ref operator.Ref) bool { return g.batch.Has(ref) }

// MayProceed implements reconcile.Host.
func (g *Gate) MayProceed(ref operator.Ref, c guard.Counted, free bool) bool {
	if g.Pipeline.HasRows() && g.Cache.UpstreamUID(ref) == "" {
		return g.batch.NoteGone(ref, c)
	}
	return g.batch.Note(ref, c, free)
}

// Serve lets upstreams that guard holds go on once they are counted and allowed, or confirmed, until live is done:
// proceed is called with them. hold is called with why the others wait, and with them, or with an empty text.
func (g *Gate) Serve(
	live context.Context, hold func(why string, held func() []operator.Ref), proceed func(refs []operator.Ref),
) {
	g.batch.Serve(live, g.host(), func(text string) { hold(text, g.batch.Held) }, proceed)
}

// PublishPassed publishes that nothing waits in the shards of this process. It returns false if it has to be tried
// again.
func (g *Gate) PublishPassed(ctx context.Context) (published bool) {
	p := g.host().Processes
	if p == nil || !g.IsGuarded() {
		return true
	}
	err := p.PublishPassed(ctx, g.Cache.CountDownstreams())
	if err != nil && ctx.Err() == nil {
		g.Log.Info("cannot publish that nothing waits for guard, will retry: until then, a process that starts waits for it",
			"lease", p.Board.Name, "error", err.Error())
	}
	return err == nil
}

// uidOf is the uid of an upstream; empty if the cache does not show it. A row that is gone still has one.
func (g *Gate) uidOf(ref operator.Ref) types.UID {
	if uid := g.Cache.UpstreamUID(ref); uid != "" || !g.Pipeline.HasRows() {
		return uid
	}
	return g.Pipeline.Row(ref.Name, nil).GetUID()
}

// DropLost removes what is counted of upstreams that are no longer those of this process: another one counts them.
func (g *Gate) DropLost() {
	lost := func(ref operator.Ref) bool {
		uid := g.uidOf(ref)
		return uid == "" || !g.Owned.Has(g.Shards.Of(uid))
	}
	g.batch.Drop(lost)
	g.tally.Load().Drop(lost)
}

// ServeRollout moves upstreams step by step, until live is done: see rollout.Serve. What a person decides is watched
// while a rollout is under way.
func (g *Gate) ServeRollout(
	live context.Context, r *rollout.Rollout, show func(rollout.Progress), move, back func(refs []operator.Ref),
) {
	var control guard.Confirmation
	end := func() {
		if control != nil {
			control.Close()
			control = nil
		}
	}
	defer end()
	r.Serve(live, func() (decision, problem string) {
		if !r.IsOpen() {
			end()
			return "", ""
		}
		if control == nil {
			control = g.Decision(g.Pipeline.Config.Rollout.Control)
		}
		return control.Digest(), control.Problem()
	}, show, move, back)
}
