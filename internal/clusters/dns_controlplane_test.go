//go:build controlplane

package clusters

import (
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/corollary-dev/corollary/internal/nameserver"
)

// dnsService is a name of which each cluster asks a name server of its own.
type dnsService struct {
	servers map[string]*nameserver.Server
	// changes is how often the name named another cluster than before; named is the last one.
	changes int
	named   string
}

// Addr implements service.
func (s *dnsService) Addr() string { return s.servers[clusterNames[0]].Addr }

// Reach implements direct.
func (s *dnsService) Reach(cluster string) string { return s.servers[cluster].Addr }

// Config implements service.
func (s *dnsService) Config(_ *testing.T, addr, name string) string {
	return "dns: {txt: " + name + ".example.com, resolver: \"" + addr + "\"}\n"
}

// Restart implements service.
func (s *dnsService) Restart() func(*testing.T) { return nil }

// say has all servers name one cluster.
func (s *dnsService) say(cluster string) {
	if cluster != s.named {
		s.changes, s.named = s.changes+1, cluster
	}
	for _, server := range s.servers {
		server.Say(cluster)
	}
}

// each does something to all servers.
func (s *dnsService) each(do func(*nameserver.Server)) {
	for _, server := range s.servers {
		do(server)
	}
}

// nameFault is a fault of the name, or while the name changes.
type nameFault struct {
	name string
	do   func(w *world, s *dnsService, active, standby *cluster)
	// nobody is true if it leaves nobody named, so that nobody writes.
	nobody bool
	// divided is true if the servers do not agree: then two clusters may write at a time.
	divided bool
	// rare faults are not part of the short form.
	rare bool
}

var nameFaults = []nameFault{
	{name: "the name changes", rare: true, do: func(w *world, s *dnsService, _, standby *cluster) { s.say(standby.name) }},
	{name: "the name changes while the active cluster gets no answers", do: func(w *world, s *dnsService, active, standby *cluster) {
		s.say(standby.name)
		s.servers[active.name].Hush()
		w.acts(standby)
		s.say(standby.name)
	}},
	{name: "the name changes while the active process is frozen", do: func(w *world, s *dnsService, active, standby *cluster) {
		active.signal(syscall.SIGSTOP)
		defer active.signal(syscall.SIGCONT)
		s.say(standby.name)
		w.acts(standby)
	}},
	{name: "the active process is killed", rare: true, do: func(_ *world, _ *dnsService, active, _ *cluster) {
		active.signal(syscall.SIGKILL)
	}},
	{name: "the active process is stopped", rare: true, do: func(_ *world, _ *dnsService, active, _ *cluster) {
		active.signal(syscall.SIGTERM)
	}},
	{name: "the active process is frozen", rare: true, do: func(w *world, _ *dnsService, active, _ *cluster) {
		active.signal(syscall.SIGSTOP)
		defer active.signal(syscall.SIGCONT)
		w.pause(0, 2*leaseDuration)
	}},
	{name: "the active cluster gets no answers", rare: true, do: func(w *world, s *dnsService, active, _ *cluster) {
		s.servers[active.name].Hush()
		w.pause(0, 2*leaseDuration)
		s.say(active.name)
	}},
	{name: "the standby gets no answers, and is named meanwhile", rare: true, do: func(w *world, s *dnsService, _, standby *cluster) {
		s.say(standby.name)
		s.servers[standby.name].Hush()
		w.pause(0, 2*leaseDuration)
		s.say(standby.name)
	}},
	{name: "the name servers do not agree", divided: true, rare: true, do: func(w *world, s *dnsService, active, standby *cluster) {
		s.servers[standby.name].Say(standby.name)
		w.acts(standby)
		if _, too := w.log.Active(active.name); !too {
			w.t.Error("the other cluster has stopped, though it is still named by its server")
		}
		s.changes++
		s.say([]*cluster{active, standby}[w.random.IntN(2)].name)
		w.pause(renewDeadline, 2*renewDeadline)
	}},
	{name: "answers time out", nobody: true, do: func(_ *world, s *dnsService, _, _ *cluster) { s.each((*nameserver.Server).Hush) }},
	{name: "the name servers fail", nobody: true, rare: true, do: func(_ *world, s *dnsService, _, _ *cluster) {
		s.each(func(server *nameserver.Server) { server.Fail(dns.RcodeServerFailure) })
	}},
	{name: "the name names both clusters", nobody: true, do: func(_ *world, s *dnsService, _, _ *cluster) {
		s.each(func(server *nameserver.Server) { server.Say(clusterNames...) })
	}},
	{name: "the name does not exist", nobody: true, rare: true, do: func(_ *world, s *dnsService, _, _ *cluster) {
		s.each(func(server *nameserver.Server) { server.Say() })
	}},
	{name: "the name flaps", nobody: true, do: func(w *world, s *dnsService, active, standby *cluster) {
		for range 4 {
			for _, c := range []*cluster{standby, active} {
				s.each(func(server *nameserver.Server) { server.Say(c.name) })
				w.pause(2*retryPeriod, 2*retryPeriod+time.Millisecond)
			}
		}
		s.each(func(server *nameserver.Server) { server.Say() })
	}},
}

// acts waits until a cluster says that it is active.
func (w *world) acts(c *cluster) {
	w.t.Helper()
	eventually(w.t, c.name+" is not active", func() bool {
		_, acts := w.log.Active(c.name)
		return acts
	})
}

// TestDNS: a name is not a lock. Each cluster writes only as the answers that it gets allow; and where all that ask get
// the same answers, or none, only the cluster that is named.
func TestDNS(t *testing.T) {
	t.Parallel()
	s := &dnsService{servers: map[string]*nameserver.Server{}}
	for _, name := range clusterNames {
		s.servers[name] = nameserver.Start(t)
	}
	s.say(clusterNames[0])
	w := newWorld(t, s, *seed)
	defer w.keepLog()
	list := schedule(w.random, nameFaults, func(f nameFault) string { return f.name }, func(f nameFault) bool { return f.rare })
	divided := span{}
	for _, f := range list {
		begin := time.Now()
		s.inject(w, f)
		if f.divided {
			divided = append(divided, [2]time.Time{begin, time.Now()})
		}
	}
	answers := map[string][]Answer{}
	for cluster, server := range s.servers {
		for _, a := range server.Given() {
			answers[cluster] = append(answers[cluster], Answer{a.At, a.Values})
		}
	}
	writes := w.writes()
	for _, wrong := range (Promise{After: leaseDuration, Until: renewDeadline, Late: onItsWay}).CheckNamed(writes, answers) {
		t.Error(wrong)
	}
	// Clusters take turns no more often than the name has changed: no two of them write at a time, unless the servers
	// disagree.
	turns, last := 0, ""
	for _, x := range writes {
		if x.Cluster != last && !divided.has(x.At) {
			turns, last = turns+1, x.Cluster
		}
	}
	if turns > s.changes || turns < 2 && *only == "" {
		t.Errorf("the name changed %d times, and the clusters that write %d times", s.changes, turns)
	}
	t.Logf("%d faults, %d changes of the name, %d writes", len(list), s.changes, len(writes))
}

// span are times from one moment to another.
type span [][2]time.Time

func (s span) has(at time.Time) bool {
	return slices.ContainsFunc(s, func(part [2]time.Time) bool { return at.After(part[0]) && at.Before(part[1]) })
}

// inject has a fault happen, and waits until the cluster that is named writes.
func (s *dnsService) inject(w *world, f nameFault) {
	w.t.Helper()
	active, standby := w.active()
	w.log.Note("", EventFault, f.name)
	begin := time.Now()
	f.do(w, s, active, standby)
	if f.nobody {
		w.silent(f.name, time.Now())
		s.say([]string{active.name, standby.name}[w.random.IntN(2)])
	}
	w.log.Note("", EventHealed, f.name)
	now := w.named(s.named)
	eventually(w.t, f.name+": nobody writes", func() bool {
		_, wrote := w.wrote(now, begin, NoToken)
		return wrote
	})
}

// named waits until the cluster that is named is active.
func (w *world) named(name string) *cluster {
	w.t.Helper()
	for _, c := range w.clusters {
		if c.name == name {
			w.acts(c)
			return c
		}
	}
	w.t.Fatal("there is no cluster " + name)
	return nil
}

// onItsWay is how long a write, or an answer, takes from one process to the other, on a busy machine.
const onItsWay = time.Second

// silent waits until nobody is named for long, and checks that nobody wrote after the deadline.
func (w *world) silent(fault string, since time.Time) {
	w.t.Helper()
	w.pause(renewDeadline+leaseDuration, renewDeadline+leaseDuration+time.Second)
	for _, x := range w.writes() {
		if x.At.After(since.Add(renewDeadline + onItsWay)) {
			w.t.Errorf("%s: %s, %s after it", fault, x, x.At.Sub(since))
		}
	}
}
