package cli_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// TestFrozenLeaderWritesNothing: leaders at work are frozen in the midst of a burst, others take over, and the first ones
// go on. None of them writes anything any more: they see who leads, and end.
func TestFrozenLeaderWritesNothing(t *testing.T) {
	t.Parallel()
	memory(t)
	const rounds = 5
	pairs, loads := make([]*pair, rounds), make([]*writes, rounds) // they run side by side, since most of it is waiting
	for i := range pairs {
		pairs[i] = startLeader(t, testkit.Config(t), firstElection)
	}
	for _, p := range pairs {
		p.addStandby(t)
	}
	for _, p := range pairs {
		p.ready(t)
	}
	for i, p := range pairs {
		loads[i] = startLoad(t, p.ns, 100*time.Millisecond)
		burst(t, p.ns)
		moment := time.After(rand.N(50 * time.Millisecond))
		<-moment
		p.leader.signal(t, syscall.SIGSTOP)
	}
	for i, p := range pairs {
		eventuallyLeads(t, p.standby)
		loads[i].stop()
	}
	thawed := make([]time.Time, rounds)
	for i, p := range pairs {
		thawed[i] = time.Now()
		p.leader.signal(t, syscall.SIGCONT)
	}
	for i, p := range pairs {
		if code := p.leader.wait(t); code != 1 {
			t.Errorf("round %d: a leader that lost its Lease ends with exit code %d, want 1", i, code)
		}
		text := p.leader.text(t)
		if !strings.Contains(text, "Error: running: the Lease "+p.ns+"/widgets-leader was lost: ") || strings.Contains(text, "goroutine ") {
			t.Errorf("round %d: it does not say what happened, or panics:\n%s", i, text)
		}
		t.Logf("round %d: it ended %s after it went on", i, time.Since(thawed[i]).Round(time.Millisecond))
	}
	for i, p := range pairs {
		p.turn(t, "red")
		eventuallyColor(t, p.ns, "red")
		if late := p.leader.wrote(t, thawed[i]); len(late) > 0 {
			t.Errorf("round %d: %d writes after it went on, the first %+v", i, len(late), late[0])
		}
		taken := testkit.Audit(t, testkit.By(p.leader.user), testkit.Request.Mutating, func(r testkit.Request) bool {
			return r.Resource == "leases" && r.Received.After(thawed[i]) && r.Code < 300
		})
		if len(taken) > 0 {
			t.Errorf("round %d: it wrote the next leader's Lease: %+v", i, taken[0])
		}
	}
}

// burst makes more work than the leader can do in a moment.
func burst(t *testing.T, ns string) {
	t.Helper()
	client := testkit.Dynamic(t).Resource(widgets).Namespace(ns)
	for i := range 40 {
		ok(t, applyWidget(t.Context(), client, fmt.Sprintf("burst-%d", i), "blue"))
	}
}
