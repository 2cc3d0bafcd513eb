//go:build controlplane

package clusters

import (
	"context"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// setFault is something that goes wrong with processes that share shards, and is well again when it returns.
type setFault struct {
	name string
	// do has it happen to a process that holds shards.
	do func(s *set, m *member)
	// rare faults are not part of the short form.
	rare bool
	// bounded faults leave others, which must take the shards of the process as soon as its Lease has run out.
	bounded bool
}

var setFaults = []setFault{
	{"a process is killed", func(_ *set, m *member) { m.signal(syscall.SIGKILL) }, false, true},
	{"a process is stopped, and starts again", func(_ *set, m *member) { m.signal(syscall.SIGTERM) }, true, false},
	{"a process is frozen past its Lease", func(s *set, m *member) {
		m.signal(syscall.SIGSTOP)
		defer m.signal(syscall.SIGCONT)
		s.others()
	}, false, true},
	{"a process is frozen for a moment", func(s *set, m *member) {
		m.signal(syscall.SIGSTOP)
		s.pause(0, *lease*2/3)
		m.signal(syscall.SIGCONT)
	}, true, false},
	{"a process cannot reach the API server", func(s *set, m *member) {
		m.proxy.Lose()
		defer m.proxy.Pass()
		s.others()
	}, true, true},
	{"a process cannot reach the API server for a moment", func(s *set, m *member) {
		m.proxy.Lose()
		s.pause(0, *lease*2/3)
		m.proxy.Pass()
	}, true, false},
	{"connections break", func(s *set, _ *member) {
		for range 5 {
			for _, m := range s.members {
				m.proxy.Cut()
			}
			s.pause(0, *lease/10)
		}
	}, true, false},
	{"the network is slow", func(s *set, m *member) {
		m.proxy.Delay(*lease / 20)
		s.pause(*lease, 2**lease)
		m.proxy.Pass()
	}, true, false},
	{"a process joins, and leaves", func(s *set, _ *member) {
		more := s.members[*processes]
		more.join()
		s.settled(*processes + 1)
		more.leave(syscall.SIGTERM)
	}, true, false},
	{"a process joins, and is killed while it loads", func(s *set, _ *member) {
		more := s.members[*processes]
		more.join()
		s.pause(0, 2**lease)
		more.leave(syscall.SIGKILL)
	}, true, false},
	{"all processes are killed", func(s *set, _ *member) {
		for _, m := range s.members {
			m.signal(syscall.SIGKILL)
		}
	}, true, false},
	{"the API server is restarted", func(s *set, _ *member) {
		if err := s.plane.RestartServer(); err != nil {
			s.t.Fatal(err)
		}
	}, true, false},
}

func (s *set) pause(least, most time.Duration) {
	<-time.After(least + time.Duration(s.random.Int64N(int64(most-least)+1)))
}

// others waits until all processes but one share all shards. Of a process that is alone, it waits for its Lease to run
// out.
func (s *set) others() {
	if *processes == 1 {
		s.pause(*lease, 2**lease)
		return
	}
	s.settled(*processes - 1)
}

// TestShardFaults: processes share the shards of Widgets that change all the time, while faults happen. No object is
// written by a process that does not hold its shard, each shard has an owner soon, and in the end everything is in
// sync.
func TestShardFaults(t *testing.T) {
	t.Parallel()
	s := newSet(t)
	defer func() { (&world{t: t, log: s.log}).keepLog() }()
	s.settled(*processes)
	ctx, cancel := context.WithCancel(t.Context())
	var load sync.WaitGroup
	load.Go(func() { s.load(ctx) })
	load.Go(func() { s.churn(ctx) })
	load.Go(func() { s.pulse.run(ctx) })
	defer func() { cancel(); load.Wait() }()
	list := schedule(s.random, setFaults, func(f setFault) string { return f.name }, func(f setFault) bool { return f.rare })
	begin := time.Now()
	for _, f := range list {
		s.inject(f)
	}
	spent := time.Since(begin)
	cancel()
	load.Wait()
	s.inSync()
	a := s.read()
	if len(a.writes) == 0 {
		t.Error("the audit log has no write of a process")
	}
	for _, wrong := range CheckOwners(a.writes, a.takings) {
		t.Error(wrong)
	}
	t.Logf("%d faults in %s, %.0f changes a second, %d Widgets deleted, %d writes for objects, %d of Leases of shards, %d processes",
		len(list), spent.Round(time.Second), float64(s.sent.Load())/spent.Seconds(), s.deleted.Load(),
		len(a.writes), len(a.takings), len(a.renewed))
}

// inject has a fault happen, and waits until the processes share the shards again.
func (s *set) inject(f setFault) {
	s.t.Helper()
	m := s.members[s.random.IntN(*processes)]
	s.log.Note("", EventFault, f.name+": "+m.name)
	begin := time.Now()
	s.pulse.reset()
	f.do(s, m)
	s.log.Note("", EventHealed, f.name)
	s.settled(*processes)
	gap := time.Duration(0)
	if f.bounded && *processes > 1 {
		a := s.read()
		gap = Orphaned(a.takings, a.renewed, begin)
		// A lease duration, if the machine is not busy.
		if allowed := 2**lease + 4*s.pulse.late(); gap > allowed {
			s.t.Errorf("%s: a shard was taken %s after the last renewal of its process, later than %s", f.name, gap, allowed)
		}
	}
	s.t.Logf("%s, %s: %s; shards without a living owner for %s", f.name, m.name, time.Since(begin).Round(time.Millisecond),
		gap.Round(time.Millisecond))
}

// pulse measures by how much this process is late: how busy the machine is.
type pulse struct{ worst atomic.Int64 }

func (p *pulse) run(ctx context.Context) {
	const every = 50 * time.Millisecond
	for ctx.Err() == nil {
		begin := time.Now()
		select {
		case <-ctx.Done():
		case <-time.After(every):
		}
		late := int64(time.Since(begin) - every)
		for worst := p.worst.Load(); late > worst && !p.worst.CompareAndSwap(worst, late); worst = p.worst.Load() {
		}
	}
}

func (p *pulse) reset() { p.worst.Store(0) }

// late is the most since the last reset.
func (p *pulse) late() time.Duration { return time.Duration(p.worst.Load()) }
