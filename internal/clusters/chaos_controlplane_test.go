//go:build controlplane

package clusters

import (
	"flag"
	"math/rand/v2"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/corollary-dev/corollary/internal/controlplane"
	"github.com/corollary-dev/corollary/pkg/activation"
)

var (
	rounds = flag.Int("rounds", 0, "random faults for each lock service, after one of each kind; 0: only the most common ones")
	seed   = flag.Uint64("seed", 1, "of the random faults")
	only   = flag.String("fault", "", "only faults whose names contain this")
	svg    = flag.String("svg", "", "a file for the picture of the run, with -run of one test")
	logs   = flag.String("logs", "", "a directory for the logs of all processes")
)

// fault is something that goes wrong, and is well again when it returns.
type fault struct {
	name string
	do   func(w *world, active, standby *cluster)
	// outcome is what must be: takeover, newHold, stays, or either.
	outcome string
	// rare faults are not part of the short form.
	rare bool
	// bounded faults leave a standby that must take over as soon as the lock has run out.
	bounded bool
}

const (
	takeover = "takeover" // by the other cluster
	newHold  = "newHold"  // a greater token, in either cluster
	stays    = "stays"
	either   = "either"
)

var faults = []fault{
	{"the active process is killed", func(_ *world, active, _ *cluster) { active.signal(syscall.SIGKILL) }, newHold, false, true},
	{"the active process is stopped", func(_ *world, active, _ *cluster) { active.signal(syscall.SIGTERM) }, takeover, true, false},
	{"the active process is frozen past the lease", func(w *world, active, standby *cluster) {
		active.signal(syscall.SIGSTOP)
		defer active.signal(syscall.SIGCONT)
		w.becomesActive(standby)
	}, takeover, false, true},
	{"the active process is frozen for a moment", func(w *world, active, _ *cluster) {
		active.signal(syscall.SIGSTOP)
		w.pause(0, renewDeadline)
		active.signal(syscall.SIGCONT)
	}, either, true, false},
	{"the active cluster cannot reach the lock", func(w *world, active, standby *cluster) {
		active.proxy.Drop()
		defer active.proxy.Pass()
		w.becomesActive(standby)
		w.pause(0, time.Second)
	}, takeover, false, true},
	{"the standby cannot reach the lock", func(w *world, _, standby *cluster) {
		standby.proxy.Drop()
		w.pause(leaseDuration, 2*leaseDuration)
		standby.proxy.Pass()
	}, stays, true, false},
	{"no cluster can reach the lock", func(w *world, active, standby *cluster) {
		active.proxy.Drop()
		standby.proxy.Drop()
		w.pause(0, 2*leaseDuration)
		active.proxy.Pass()
		standby.proxy.Pass()
	}, either, true, false},
	{"connections to the lock break", func(w *world, active, standby *cluster) {
		for range 5 {
			active.proxy.Cut()
			standby.proxy.Cut()
			w.pause(0, retryPeriod)
		}
	}, either, true, false},
	{"the lock is slow for the active cluster", func(w *world, active, _ *cluster) {
		active.proxy.Delay(renewDeadline / 3)
		w.pause(leaseDuration, 2*leaseDuration)
		active.proxy.Pass()
	}, either, true, false},
	{"the active cluster is asked to hand over", func(w *world, _, standby *cluster) {
		// Its process may have been killed just before: with nobody to hand over to, the lock is taken again by the one that
		// had it.
		holder := w.state().Holder
		eventually(w.t, standby.name+" has not seen the lock", func() bool {
			waitsFor, _ := w.log.WaitsFor(standby.name)
			return waitsFor == holder
		})
		if _, err := activation.AskToHandOver(w.t.Context(), w.lock); err != nil {
			w.log.Note("", EventFault, "the request to hand over came too late: "+err.Error())
			return
		}
		w.becomesActive(standby)
	}, either, false, false},
	{"the lock service is restarted", func(w *world, _, _ *cluster) {
		if restart := w.service.Restart(); restart != nil {
			restart(w.t)
		}
	}, either, false, false},
}

// pause lets between least and most pass.
func (w *world) pause(least, most time.Duration) {
	<-time.After(least + time.Duration(w.random.Int64N(int64(most-least)+1)))
}

func (w *world) becomesActive(c *cluster) {
	w.t.Helper()
	eventually(w.t, c.name+" is not active", func() bool {
		_, acts := w.log.Active(c.name)
		return acts && w.state().Identity == c.name
	})
}

// inject has a fault happen, and waits until a cluster is active and writes, with a token that is not smaller.
func (w *world) inject(f fault) {
	w.t.Helper()
	if f.bounded { // a client that was cut off connects again after some time
		eventually(w.t, "the lock is not renewed", func() bool { return w.watch.renewed(w.state().Token).Sub(w.healed) > leaseDuration/2 })
	}
	active, standby := w.active()
	before := w.state()
	var seen time.Time
	if f.bounded || f.outcome == takeover { // else the process of the active cluster may be the first to take it again
		eventually(w.t, standby.name+" has not seen the lock", func() (isSeen bool) {
			var holder string
			holder, seen = w.log.WaitsFor(standby.name)
			return holder == before.Holder
		})
	}
	w.log.Note("", EventFault, f.name)
	begin := time.Now()
	f.do(w, active, standby)
	w.log.Note("", EventHealed, f.name)
	healed := time.Now()
	w.healed = healed
	switch f.outcome {
	case takeover:
		w.becomesActive(standby)
	case newHold:
		eventually(w.t, f.name+": nobody takes the lock", func() bool { return w.state().Token > before.Token })
	}
	now, _ := w.active()
	after := w.state()
	if gap, allowed := w.watch.gap(begin, seen, before.Token, after); f.bounded && after.Token > before.Token && gap > allowed {
		w.t.Errorf("%s: the lock was taken %s after its last renewal, later than %s", f.name, gap, allowed)
	}
	if after.Token < before.Token || f.outcome == stays && (now != active || after.Token != before.Token) {
		w.t.Errorf("%s: before, %s was active with token %s, then %s with token %s", f.name, active.name, before.Token, now.name, after.Token)
	}
	eventually(w.t, f.name+": nobody writes", func() bool {
		_, first := w.wrote(active, healed, after.Token)
		_, second := w.wrote(standby, healed, after.Token)
		return first || second
	})
	if first, ok := w.wrote(standby, begin, after.Token); ok && now == standby {
		w.t.Logf("%s: the first write of the next cluster came after %s", f.name, first.Sub(begin).Round(time.Millisecond))
	}
}

// schedule is each fault once, and then random ones.
func schedule[F any](random *rand.Rand, faults []F, name func(F) string, rare func(F) bool) []F {
	faults = slices.DeleteFunc(slices.Clone(faults), func(f F) bool {
		return !strings.Contains(name(f), *only) || rare(f) && *rounds == 0 && *only == ""
	})
	list := slices.Clone(faults)
	random.Shuffle(len(list), func(i, k int) { list[i], list[k] = list[k], list[i] })
	for range *rounds {
		list = append(list, faults[random.IntN(len(faults))])
	}
	return list
}

// keepLog writes what was logged, if it is wanted.
func (w *world) keepLog() {
	if *logs != "" {
		write(w.t, *logs, w.t.Name()+".log", w.log.Text())
	} else if w.t.Failed() {
		w.t.Log(w.log.Text())
	}
}

// chaos injects faults.
func chaos(t *testing.T, s service) {
	t.Helper()
	w := newWorld(t, s, *seed)
	defer w.keepLog()
	list := schedule(w.random, faults, func(f fault) string { return f.name }, func(f fault) bool { return f.rare })
	for _, f := range list {
		w.inject(f)
	}
	writes := w.writes()
	for _, wrong := range Check(writes) {
		t.Error(wrong)
	}
	if *svg != "" {
		write(w.t, filepath.Dir(*svg), filepath.Base(*svg), w.log.SVG("Two clusters, one lock, and faults", clusterNames, writes))
	}
	tokens := map[int64]int{}
	for _, x := range writes {
		tokens[x.Token]++
	}
	t.Logf("%d faults, %d writes, %d tokens", len(list), len(writes), len(tokens)-1)
}

// leaseService is a Lease in one of the clusters.
type leaseService struct{ cfg *rest.Config }

func (s *leaseService) Addr() string {
	at, err := url.Parse(s.cfg.Host)
	if err != nil || at.Host == "" {
		return s.cfg.Host
	}
	return at.Host
}

func (s *leaseService) Config(t *testing.T, addr, name string) string {
	t.Helper()
	cfg := rest.CopyConfig(s.cfg)
	cfg.Host = "https://" + addr
	if _, _, err := net.SplitHostPort(addr); err != nil {
		t.Fatal(err)
	}
	text, err := controlplane.Kubeconfig(cfg)
	must(t, err)
	file := filepath.Join(t.TempDir(), "lock.kubeconfig")
	write(t, filepath.Dir(file), filepath.Base(file), string(text))
	return "lease: {namespace: default, name: " + name + ", kubeconfig: " + file + "}\n"
}

func (s *leaseService) Restart() func(*testing.T) { return nil }

func TestLease(t *testing.T) {
	t.Parallel()
	chaos(t, &leaseService{cfg: planes["eu"].Config()})
}
