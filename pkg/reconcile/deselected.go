package reconcile

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/report"
)

// deselected are the upstreams that were seen losing the labels that the config selects by, their own or their namespace's:
// their downstreams are unwanted. An upstream that is merely found without the labels may be excluded by a change of the
// config, which deletes nothing.
type deselected struct {
	mu         sync.Mutex
	upstreams  map[operator.Ref]types.UID
	namespaces map[string]struct{}
}

// upstream records that the watch no longer shows the upstream of that uid.
func (d *deselected) upstream(ref operator.Ref, uid types.UID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.upstreams == nil {
		d.upstreams = map[operator.Ref]types.UID{}
	}
	d.upstreams[ref] = uid
}

// namespace records that namespaces are no longer selected, or are again.
func (d *deselected) namespace(names []operator.Ref, left bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.namespaces == nil {
		d.namespaces = map[string]struct{}{}
	}
	for _, name := range names {
		if delete(d.namespaces, name.Name); left {
			d.namespaces[name.Name] = struct{}{}
		}
	}
}

// has reports whether the upstream of that uid, or its namespace, was seen leaving.
func (d *deselected) has(ref operator.Ref, uid types.UID) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	seen, upstream := d.upstreams[ref]
	_, namespace := d.namespaces[ref.Namespace]
	return upstream && seen == uid || namespace && ref.Namespace != ""
}

// some reports whether an upstream of that name was seen leaving.
func (d *deselected) some(ref operator.Ref) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, ok := d.upstreams[ref]
	return ok
}

// refs lists the upstreams that were seen leaving.
func (d *deselected) refs() []operator.Ref {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Collect(maps.Keys(d.upstreams))
}

// forget is for an upstream that is gone, cleaned up after, or selected. It returns the uid that was remembered.
func (d *deselected) forget(ref operator.Ref) types.UID {
	d.mu.Lock()
	defer d.mu.Unlock()
	defer delete(d.upstreams, ref)
	return d.upstreams[ref]
}

// forgetThat forgets the upstreams with such a uid.
func (d *deselected) forgetThat(is func(uid types.UID) bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	maps.DeleteFunc(d.upstreams, func(_ operator.Ref, uid types.UID) bool { return is(uid) })
}

// inherit takes over what another session saw. Neither session works.
func (d *deselected) inherit(from *deselected) {
	from.mu.Lock()
	upstreams, namespaces := maps.Clone(from.upstreams), maps.Clone(from.namespaces)
	from.mu.Unlock()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.upstreams == nil {
		d.upstreams = map[operator.Ref]types.UID{}
	}
	maps.Copy(d.upstreams, upstreams)
	if d.namespaces == nil {
		d.namespaces = map[string]struct{}{}
	}
	maps.Copy(d.namespaces, namespaces)
}

// isLeftOver reports whether an upstream that is not selected keeps its downstreams: it was not seen leaving, and its status
// does not say that they are being removed.
func (r *reconciliation) isLeftOver() bool {
	return r.upstream.GetDeletionTimestamp() == nil && !r.deselected.has(r.ref, r.upstream.GetUID()) && !report.SaysNotSelected(r.Pipeline.Settings, r.upstream)
}

// leftBehind are the upstreams that a changed config does not select any more.
type leftBehind struct {
	mu sync.Mutex
	// reported are the uids of those whose status was written, even if somebody has overwritten it since.
	reported map[types.UID]struct{}
	// dropped are those in namespaces that were watched until just now.
	dropped map[operator.Ref]struct{}
}

// isNew reports whether the upstream of that uid was not reported before, and notes that it is now.
func (l *leftBehind) isNew(uid types.UID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.reported == nil {
		l.reported = map[types.UID]struct{}{}
	}
	_, known := l.reported[uid]
	l.reported[uid] = struct{}{}
	return !known
}

// drop notes an upstream in a namespace that is no longer watched. take reports whether one was noted, once.
func (l *leftBehind) drop(ref operator.Ref) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dropped == nil {
		l.dropped = map[operator.Ref]struct{}{}
	}
	l.dropped[ref] = struct{}{}
}

func (l *leftBehind) take(ref operator.Ref) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, ok := l.dropped[ref]
	delete(l.dropped, ref)
	return ok
}

// findLeftBehind enqueues the upstreams that the session before worked on and that this one does not select, to be reported once: their
// downstreams need not be watched any more.
func (r *Reconciler) findLeftBehind(before *Reconciler) {
	if r.Pipeline.HasRows() {
		return
	}
	for ref := range before.memory.records {
		if r.Cache.UpstreamUID(ref) != "" {
			continue
		}
		if !r.Cache.Watches(ref.Namespace) {
			r.leftBehind.drop(ref)
		}
		r.Host.Enqueue(ref)
	}
}

// reportLeftover has the status of an upstream that is left over say so, once: without a change of the config nothing would tell. Another
// process that uses the same conventions may select it, and then overwrites that.
func (r *reconciliation) reportLeftover(ctx context.Context) {
	if !r.isLeftOver() || r.isCounting() || r.Pipeline.HasRows() || !r.Pipeline.StatusEnabled() || report.SaysLeftover(r.Pipeline.Settings, r.upstream) ||
		!report.SaysItIsKept(r.Pipeline.Settings, r.upstream) {
		return
	}
	ctx, leave, ok := r.enterShard(ctx)
	if !ok {
		return
	}
	defer leave()
	if r.leftBehind.isNew(r.upstream.GetUID()) {
		r.writeReport(ctx, report.Leftover(r.Pipeline.Settings, r.upstream, r.Pipeline.Match(r.upstream).Unmet, metav1.NewTime(r.now)), func() drift.Sum { return drift.Sum{} })
		r.warn("left over: a changed config does not select the upstream any more", "upstream", r.ref.String())
	}
}

// reportDropped is reportLeftover for an upstream in a namespace that is no longer watched, and that others may look after by now. It is
// tried once: the right to write there may be gone, too.
func (r *Reconciler) reportDropped(ctx context.Context, ref operator.Ref) error {
	if r.isCounting() || !r.leftBehind.take(ref) {
		return nil
	}
	up, err := r.ReadUpstream(ctx, ref)
	if errors.Is(err, apply.ErrGone) {
		return nil
	}
	if err != nil {
		return err
	}
	r.newReconciliation(ref, up).reportLeftover(ctx)
	return nil
}

// standByWait bounds a read in StandBy, since nobody acts before it is done.
const standByWait = 5 * time.Second

// StandBy forgets an upstream that was seen leaving, once it is gone or the leader has cleaned up after it. It writes nothing:
// the next leader finds again what is to be done. It returns after how long to check again.
func (r *Reconciler) StandBy(ctx context.Context, ref operator.Ref) time.Duration {
	if !r.deselected.some(ref) || r.Cache.UpstreamUID(ref) != "" {
		return 0
	}
	ctx, cancel := context.WithTimeout(ctx, standByWait)
	defer cancel()
	l, err := r.beginUncached(ctx, ref)
	if err == nil && (l == nil || l.unknown) {
		if l != nil {
			l.releaseSlot()
		}
		r.forget(ref)
		return 0
	}
	if err == nil {
		done := report.SaysNotSelected(l.Pipeline.Settings, l.upstream) && len(l.owned()) == 0 && !l.hasFinalizer()
		l.releaseSlot()
		if r.forget(ref); done {
			r.deselected.forget(ref)
			return 0
		}
	}
	return time.Duration(r.Pipeline.Config.Retry.MaxDelay)
}
