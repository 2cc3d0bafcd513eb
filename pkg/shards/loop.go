package shards

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// looksInRetryPeriod is how often the Leases are listed in a retry period while shards change hands; else once.
const looksInRetryPeriod = 4

// loop looks at the Leases of the set, and does what follows, until ctx is done. refuse ends the part of this process.
func (m *Member) loop(ctx context.Context, refuse context.CancelCauseFunc) {
	for elected := false; !elected; {
		select {
		case <-ctx.Done():
			return
		case <-m.wake:
			m.mu.Lock()
			refused := m.refused
			m.mu.Unlock()
			if refused != nil {
				refuse(refused)
				return
			}
		case <-m.set.Elected():
			elected = true
		}
	}
	m.mu.Lock()
	m.waitsFor = ""
	m.mu.Unlock()
	m.seen.founded, m.joined = !m.set.Joined(), m.now()
	m.options.Log.Info("taking part in the set of shards", "process", m.name, "shards", m.options.N)
	last, reported := m.now(), ""
	for ctx.Err() == nil {
		begun := m.now()
		moving, err := m.look(ctx)
		switch {
		case err == nil:
			last, reported = begun, ""
		case ctx.Err() != nil:
			return
		case m.now().Sub(last) >= m.options.RenewDeadline && m.mayWrite() == nil:
			m.process.End(fmt.Errorf("the Leases of the shards could not be listed for %s: %w", m.options.RenewDeadline, err))
			return
		case err.Error() != reported:
			reported = err.Error()
			m.options.Log.Info("the Leases of the shards cannot be listed, will retry", "error", reported)
		}
		wait := m.options.RetryPeriod
		if moving {
			wait /= looksInRetryPeriod
		}
		select {
		case <-ctx.Done():
		case <-m.wake:
		case <-time.After(wait):
		}
	}
}

// list lists the Leases of processes and shards.
func (m *Member) list(ctx context.Context) ([]coordinationv1.Lease, error) {
	list, err := m.leases.List(ctx, metav1.ListOptions{LabelSelector: m.seen.label()})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// others reports whether another process may belong to the set.
func (m *Member) others(ctx context.Context) bool {
	list, err := m.list(ctx)
	return err != nil || slices.ContainsFunc(list, func(l coordinationv1.Lease) bool {
		name, ok := m.seen.processOf(l.Name)
		return ok && name != m.name && l.Spec.HolderIdentity != nil && *l.Spec.HolderIdentity != ""
	})
}

// look lists the Leases, and does what follows from them. It reports whether shards change hands.
func (m *Member) look(ctx context.Context) (moving bool, err error) {
	begun := m.now()
	// isLate ends a look whose writes take long: what it has listed may be out of date.
	isLate := func() bool { return m.now().Sub(begun) > m.options.RetryPeriod }
	list, err := m.list(ctx)
	if err != nil {
		return true, err
	}
	v := m.seen.observe(list, m.now())
	m.compare(&v)
	if mayWrite := m.mayWrite() == nil; !mayWrite {
		return true, nil
	}
	m.adopt(ctx, &v)
	m.recordLoaded(ctx, isLate)
	v.joining = m.now().Sub(m.joined) < m.options.RetryPeriod
	actions := plan(v)
	taken := 0
	for _, a := range actions {
		if a.verb == take {
			taken++
		}
	}
	group := taken + m.count(loading)
	for _, a := range actions {
		if isLate() {
			break
		}
		if err := m.act(ctx, a, group); err != nil && !superseded(err) {
			m.options.Log.Info("a Lease of the shards could not be written, will retry", "lease",
				m.describe(a), "error", err.Error())
		} else if err != nil && a.verb == take && v.shards[a.shard].suspect() {
			break // another process tries the suspects
		}
	}
	return m.report(v, len(actions) > 0), nil
}

// compare compares what this process holds with what the Leases say, and gives back what is drained.
func (m *Member) compare(v *view) {
	m.mu.Lock()
	phases := map[int]phase{}
	for k, h := range m.held {
		phases[k] = h.phase
	}
	m.mu.Unlock()
	for k, p := range phases {
		if v.shards[k].named != m.name && p != lost {
			m.options.Log.Info("another process may hold the shard: nothing is written for it", "shard", k,
				"holder", v.shards[k].named)
			m.loseShard(k)
		}
	}
	v.mine, v.draining = map[int]bool{}, map[int]bool{}
	m.mu.Lock()
	defer m.mu.Unlock()
	for k, h := range m.held {
		v.mine[k] = true
		v.draining[k] = h.phase == draining || h.phase == drained
	}
	maps.DeleteFunc(v.draining, func(_ int, isDraining bool) bool { return !isDraining })
}

// byHand is the state of a Lease that names this process, which did not ask for that.
const byHand = "named by hand"

// adopt begins to act for shards whose Leases name this process though it does not hold them: at once if the answer to
// its write was lost. Else someone has edited the Lease, and the process that held the shard may find that out a lease
// duration later.
func (m *Member) adopt(ctx context.Context, v *view) {
	for k, s := range v.shards {
		if s.holder != m.name {
			continue
		}
		token, unanswered := m.unanswered[k]
		asked := unanswered && token == m.seen.read(m.seen.leases[k], m.options.N).token
		if !v.mine[k] && !asked && m.seen.doubted(k, byHand, m.now()) {
			continue
		}
		delete(m.seen.doubts, k)
		delete(m.unanswered, k)
		if !v.mine[k] {
			v.mine[k] = true
			m.gain(ctx, k, max(s.group, 1))
		}
	}
}

// recordLoaded writes on the Leases of shards that they have been loaded, and gives back those that are drained.
func (m *Member) recordLoaded(ctx context.Context, isLate func() bool) {
	m.mu.Lock()
	due := map[int]phase{}
	for k, h := range m.held {
		if h.phase == drained || h.phase == active && (!h.recorded || m.seen.spoiled(k)) {
			due[k] = h.phase
		}
	}
	m.mu.Unlock()
	for i, k := range slices.Sorted(maps.Keys(due)) {
		if i > 0 && isLate() {
			return
		}
		r := m.seen.read(m.seen.leases[k], m.options.N)
		if r.holder != m.name {
			continue
		}
		if due[k] == drained {
			r = r.free(m.now())
		} else {
			r.loading, r.deaths, r.group = false, 0, 0
		}
		if err := m.put(ctx, k, r); err != nil {
			m.options.Log.Info("the Lease of a shard could not be written, will retry", "shard", k, "error", err.Error())
			continue
		}
		if due[k] == drained {
			m.options.Log.V(1).Info("shard given back", "shard", k)
			m.given(k)
			continue
		}
		m.mu.Lock()
		if h := m.held[k]; h != nil {
			h.recorded = true
		}
		m.mu.Unlock()
	}
}

// put writes the Lease of a shard over the one that was seen.
func (m *Member) put(ctx context.Context, k int, r record) error {
	there := m.seen.leases[k]
	lease := m.seen.write(there, m.options.Namespace, k, m.options.N, r)
	var err error
	if there == nil {
		if lease, err = m.leases.Create(ctx, lease, metav1.CreateOptions{}); apierrors.IsAlreadyExists(err) {
			m.relabel(ctx, k)
		}
	} else {
		lease, err = m.leases.Update(ctx, lease, metav1.UpdateOptions{})
	}
	if err == nil {
		m.seen.leases[k] = lease
	}
	return err
}

// relabel puts the label back on the Lease of a shard that someone has removed: a list does not show the Lease without
// it. What the Lease says is read then.
func (m *Member) relabel(ctx context.Context, k int) {
	name := m.seen.shard(k)
	list, err := m.leases.List(ctx,
		metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()})
	if err == nil && len(list.Items) == 1 && list.Items[0].Labels[m.seen.label()] == "" {
		metav1.SetMetaDataLabel(&list.Items[0].ObjectMeta, m.seen.label(), strconv.Itoa(m.options.N))
		_, err = m.leases.Update(ctx, &list.Items[0], metav1.UpdateOptions{})
		m.options.Log.Info("the Lease of a shard lacked its label, which is put back", "lease", m.options.Namespace+"/"+name)
	}
	if err != nil && !superseded(err) {
		m.options.Log.Info("the Lease of a shard lacks its label, will retry", "lease",
			m.options.Namespace+"/"+name, "error", err.Error())
	}
}

// act does one step.
func (m *Member) act(ctx context.Context, a action, group int) error {
	switch a.verb {
	case drain:
		m.options.Log.V(1).Info("giving a shard back", "shard", a.shard)
		m.drainShard(a.shard)
		return nil
	case take:
		return m.take(ctx, a.shard, group)
	case blame:
		r := m.seen.read(m.seen.leases[a.shard], m.options.N)
		holder := r.holder
		r = r.free(m.now())
		r.deaths++
		if err := m.put(ctx, a.shard, r); err != nil {
			return err
		}
		s := shard{deaths: r.deaths, group: r.group}
		m.options.Log.Info("a process died while it was loading the shard", "shard", a.shard,
			"process", holder, "deaths", r.deaths,
			"loadedTogether", r.group, "quarantined", s.quarantined())
		return nil
	case markDead:
		return m.mark(ctx, a.process)
	default:
		lease := m.seen.heartbeat[a.process]
		return m.leases.Delete(ctx, lease.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &lease.UID,
			ResourceVersion: &lease.ResourceVersion}})
	}
}

// take has the Lease of a shard name this process.
func (m *Member) take(ctx context.Context, k, group int) error {
	r := record{}
	if there := m.seen.leases[k]; there != nil {
		r = m.seen.read(there, m.options.N)
	}
	r.holder, r.loading, r.group, r.changed, r.duration = m.name, true, group, m.now(), m.options.LeaseDuration
	if r.token++; r.token > math.MaxInt32 { // a person wrote the last one
		r.token = 1
	}
	if err := m.put(ctx, k, r); err != nil {
		if !superseded(err) {
			m.unanswered[k] = r.token
		}
		return err
	}
	m.options.Log.V(1).Info("shard taken", "shard", k, "token", r.token.String())
	m.gain(ctx, k, group)
	return nil
}

// mark takes the Lease of a process away from it, so that it cannot renew it any more.
func (m *Member) mark(ctx context.Context, name string) error {
	lease := m.seen.heartbeat[name].DeepCopy()
	metav1.SetMetaDataAnnotation(&lease.ObjectMeta, m.seen.dead(), "true")
	now, record := metav1.NewTime(m.now()), resourcelock.LeaseSpecToLeaderElectionRecord(&lease.Spec)
	record.HolderIdentity, record.LeaseDurationSeconds, record.RenewTime = "", released, now
	lease.Spec = resourcelock.LeaderElectionRecordToLeaseSpec(record)
	if _, err := m.leases.Update(ctx, lease, metav1.UpdateOptions{}); err != nil {
		return err
	}
	m.options.Log.Info("a process did not renew its Lease: others take its shards", "process", name)
	return nil
}

// superseded reports whether another process was faster, which the next look shows.
func superseded(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err)
}

// describe names the Lease of a step.
func (m *Member) describe(a action) string {
	if a.process != "" {
		return m.options.Namespace + "/" + m.seen.process(a.process)
	}
	return m.options.Namespace + "/" + m.seen.shard(a.shard)
}

// count is how many shards of this process are in a phase.
func (m *Member) count(p phase) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := 0
	for _, h := range m.held {
		if h.phase == p {
			n++
		}
	}
	return n
}

// report sets the metrics and readiness. It reports whether shards change hands.
func (m *Member) report(v view, acted bool) bool {
	counts, quarantined := map[string]int{}, map[int]bool{}
	for k, s := range v.shards {
		state := m.state(k, s)
		counts[state]++
		quarantined[k] = state == "quarantined"
	}
	setMetrics(counts)
	if m.noteMembers(v.alive) {
		go m.handler.MembersChanged() // it may wait for shards that are being opened, and this loop must not
	}
	a := assign(v)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.quarantined = quarantined
	m.settled = m.settled || !acted && len(a.taken[m.name]) == 0 && counts["draining"] == 0
	return acted || counts["free"]+counts["draining"]+counts["suspect"] > 0
}

// noteMembers reports whether a process has joined or left since the last look.
func (m *Member) noteMembers(alive []string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	changed := !slices.Equal(m.alive, alive)
	m.alive = slices.Clone(alive)
	return changed
}

// state is that of a shard as this process sees it.
func (m *Member) state(k int, s shard) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	h := m.held[k]
	switch {
	case h != nil && h.phase == drained:
		return string(draining)
	case h != nil:
		return string(h.phase)
	case s.quarantined():
		return "quarantined"
	case s.suspect() && s.holder == "":
		return "suspect"
	case s.holder == "":
		return "free"
	}
	return "elsewhere"
}
