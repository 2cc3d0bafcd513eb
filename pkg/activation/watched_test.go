package activation

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/pkg/leadership"
)

// lines collects what is logged.
type lines struct {
	mu   sync.Mutex
	list []string
}

func (l *lines) logger() logr.Logger {
	return funcr.New(func(_, args string) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.list = append(l.list, args)
	}, funcr.Options{})
}

func (l *lines) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, line := range l.list {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}

// TestWatched: what is wrong with a lock is logged, and once while it lasts.
func TestWatched(t *testing.T) {
	now := time.Now()
	at := now.Add
	const other = "another process with this identity is active"
	const clocks = "the clocks of the clusters differ"
	tests := []struct {
		reason  string
		records []*leadership.Record
		says    string
		times   int
	}{
		{"another cluster", []*leadership.Record{held("us_1", at(0)), held("us_1", at(1)), held("us_1", at(2))}, other, 0},
		{"another process with our identity that renews", []*leadership.Record{held("eu_2", at(0)), held("eu_2", at(1)), held("eu_2", at(2)),
			held("eu_2", at(3))}, other, 1},
		{"one that has died, such as ourselves before a restart", []*leadership.Record{held("eu_2", at(0)), held("eu_2", at(0)),
			held("eu_2", at(0))},
			other, 0},
		{"this process", []*leadership.Record{held("eu_1", at(0)), held("eu_1", at(1)), held("eu_1", at(2))}, other, 0},
		{"an identity with the same beginning", []*leadership.Record{held("eu_b_1", at(0)), held("eu_b_1", at(1)), held("eu_b_1",
			at(2))}, other, 0},
		{"asked to hand over", []*leadership.Record{held("eu_2"+" (asked to hand over)", at(0)), held("eu_2", at(1)), held("eu_2",
			at(2))}, other, 1},
		{"a holder without an identity", []*leadership.Record{held("somebody", at(0)), held("somebody", at(1)), held("somebody",
			at(2))}, other, 0},
		{"clocks ten minutes apart, ahead", []*leadership.Record{held("us_1", at(10*time.Minute)), held("us_1", at(10*time.Minute+1))},
			clocks, 1},
		{"clocks ten minutes apart, behind", []*leadership.Record{held("us_1", at(-10*time.Minute))}, clocks, 1},
		{"clocks that agree", []*leadership.Record{held("us_1", at(0)), held("us_1", at(time.Second))}, clocks, 0},
		{"a lock that is free", []*leadership.Record{held("", at(-time.Hour))}, clocks, 0},
	}
	for _, test := range tests {
		log := &lines{}
		w := &watched{Store: &scripted{records: test.records}, name: "w", identity: "eu", self: "eu_1",
			timings: leadership.DefaultTimings(), log: log.logger()}
		must.Do(t, w.Watch(t.Context(), func(*leadership.Record) bool { return false }))
		if n := log.count(test.says); n != test.times {
			t.Errorf("%s: it is logged %d times: %q", test.reason, n, log.list)
		}
	}
	forgetMetrics("w")
}

// scripted is a lock whose watch has the given records.
type scripted struct {
	memory
	records []*leadership.Record
}

// Watch implements leadership.Store.
func (s *scripted) Watch(_ context.Context, seen func(*leadership.Record) bool) error {
	for _, r := range s.records {
		seen(r)
	}
	return nil
}

// TestSlowLock: a service that answers each renewal at the last moment is reported once, and again only after it was
// fast; a request without an answer says for how long it was waited.
func TestSlowLock(t *testing.T) {
	log, m := &lines{}, &memory{}
	times := leadership.Timings{LeaseDuration: time.Second, RenewDeadline: 300 * time.Millisecond, RetryPeriod: 150 * time.Millisecond}
	w := &watched{Store: m, name: "w", identity: "eu", self: "eu_1", timings: times, log: log.logger()}
	defer forgetMetrics("w")
	for i, took := range []time.Duration{0, 200 * time.Millisecond, 200 * time.Millisecond, 0, 200 * time.Millisecond} {
		m.before = func() error { <-time.After(took); return nil }
		must.Do(t, w.Update(t.Context(), held("eu_1", time.Now())))
		if n, want := log.count("renewals are slow"), []int{0, 1, 1, 1, 2}[i]; n < want {
			t.Errorf("after renewal %d it was logged %d times, want %d", i, n, want)
		}
	}
	w.timings.RenewDeadline = 2 * time.Millisecond
	if err := w.explain(context.DeadlineExceeded, time.Second); !strings.Contains(err.Error(), "no answer within 1s; if the round trip") ||
		!errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("it says %v", err)
	}
}
