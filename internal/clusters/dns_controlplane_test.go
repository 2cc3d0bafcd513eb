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
	// rare faults are not part of the short form.
	rare bool
}

var nameFaults = []nameFault{
	{"the name changes", func(w *world, s *dnsService, _, standby *cluster) { s.say(standby.name) }, false, true},
	{"the name changes while the active cluster gets no answers", func(w *world, s *dnsService, active, standby *cluster) {
		s.say(standby.name)
		s.servers[active.name].Hush()
		w.acts(standby)
		s.say(standby.name)
	}, false, false},
	{"the name changes while the active process is frozen", func(w *world, s *dnsService, active, standby *cluster) {
		active.signal(syscall.SIGSTOP)
		defer active.signal(syscall.SIGCONT)
		s.say(standby.name)
		w.acts(standby)
	}, false, false},
	{"the active process is killed", func(_ *world, _ *dnsService, active, _ *cluster) { active.signal(syscall.SIGKILL) }, false, true},
	{"answers time out", func(_ *world, s *dnsService, _, _ *cluster) { s.each((*nameserver.Server).Hush) }, true, false},
	{"the name servers fail", func(_ *world, s *dnsService, _, _ *cluster) {
		s.each(func(server *nameserver.Server) { server.Fail(dns.RcodeServerFailure) })
	}, true, true},
	{"the name names both clusters", func(_ *world, s *dnsService, _, _ *cluster) {
		s.each(func(server *nameserver.Server) { server.Say(clusterNames...) })
	}, true, false},
	{"the name does not exist", func(_ *world, s *dnsService, _, _ *cluster) {
		s.each(func(server *nameserver.Server) { server.Say() })
	}, true, true},
	{"the name flaps", func(w *world, s *dnsService, active, standby *cluster) {
		for range 4 {
			for _, c := range []*cluster{standby, active} {
				s.each(func(server *nameserver.Server) { server.Say(c.name) })
				w.pause(2*retryPeriod, 2*retryPeriod+time.Millisecond)
			}
		}
		s.each(func(server *nameserver.Server) { server.Say() })
	}, true, false},
}

// acts waits until a cluster says that it is active.
func (w *world) acts(c *cluster) {
	w.t.Helper()
	eventually(w.t, c.name+" is not active", func() bool {
		_, acts := w.log.Active(c.name)
		return acts
	})
}

// TestDNS: a name is not a lock, but where all that ask get the same answers, or none, only the cluster that it names writes.
func TestDNS(t *testing.T) {
	t.Parallel()
	s := &dnsService{servers: map[string]*nameserver.Server{}}
	for _, name := range clusterNames {
		s.servers[name] = nameserver.Start(t)
	}
	s.say(clusterNames[0])
	w := newWorld(t, s, *seed)
	list := slices.Clone(nameFaults)
	if *rounds == 0 {
		list = slices.DeleteFunc(list, func(f nameFault) bool { return f.rare })
	}
	w.random.Shuffle(len(list), func(i, k int) { list[i], list[k] = list[k], list[i] })
	for range *rounds {
		list = append(list, nameFaults[w.random.IntN(len(nameFaults))])
	}
	for _, f := range list {
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
		eventually(t, f.name+": nobody writes", func() bool {
			_, wrote := w.wrote(now, begin, NoToken)
			return wrote
		})
	}
	// Clusters take turns no more often than the name has changed: no two of them write at a time.
	turns, last := 0, ""
	for _, x := range w.writes() {
		if x.Cluster != last {
			turns, last = turns+1, x.Cluster
		}
	}
	if turns > s.changes || turns < 2 {
		t.Errorf("the name changed %d times, and the clusters that write %d times:\n%s", s.changes, turns, w.log.Text())
	}
	t.Logf("%d faults, %d changes of the name", len(list), s.changes)
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

// silent waits until nobody is named for long, and checks that nobody wrote after the deadline.
func (w *world) silent(fault string, since time.Time) {
	w.t.Helper()
	w.pause(renewDeadline+leaseDuration, renewDeadline+leaseDuration+time.Second)
	const onItsWay = time.Second // from the gate to the API server, on a busy machine
	for _, x := range w.writes() {
		if x.At.After(since.Add(renewDeadline + onItsWay)) {
			w.t.Errorf("%s: %s, %s after it", fault, x, x.At.Sub(since))
		}
	}
}
