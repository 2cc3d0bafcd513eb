package leadership

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
)

// TestPoll: who may write after which answers. The deadline is 10 s, the lease lasts 15 s.
func TestPoll(t *testing.T) {
	const us, other, none = "us", "other", ""
	type step struct {
		at     int // seconds
		answer string
		writes bool
	}
	tests := []struct {
		reason string
		steps  []step
	}{
		{"named twice, but not yet for as long as another one may go on", []step{{0, us, false}, {5, us, false}, {14, us, false}}},
		{"named for that long", []step{{0, us, false}, {8, us, false}, {15, us, true}}},
		{"one answer says nothing, however long ago", []step{{0, us, false}, {3600, us, false}, {3605, us, false}}},
		{"another name begins it anew",
			[]step{{0, us, false}, {8, us, false}, {9, other, false}, {10, us, false}, {16, us, false}, {25, us, true}}},
		{"so does a question without an answer",
			[]step{{0, us, false}, {8, us, false}, {9, none, false}, {15, us, false}, {22, us, false}, {30, us, true}}},
		{"the first answer that names another ends it",
			[]step{{0, us, false}, {8, us, false}, {16, us, true}, {18, other, false}, {19, us, false}}},
		{"a missing answer does not, before the deadline",
			[]step{{0, us, false}, {8, us, false}, {16, us, true}, {18, none, true}, {25, us, true}}},
		{"no answer until the deadline",
			[]step{{0, us, false}, {8, us, false}, {16, us, true}, {20, none, true}, {26, none, false}, {27, us, false}}},
		{"frozen past the deadline", []step{{0, us, false}, {8, us, false}, {16, us, true}, {27, us, false}, {29, us, false}}},
	}
	for _, test := range tests {
		t.Run(strings.ReplaceAll(test.reason, " ", "_"), func(t *testing.T) {
			answer, now := "", time.Duration(0)
			p := NewPoll(PollOptions{Name: "DNS name x", Again: true, Log: logr.Discard(), Timings: DefaultTimings(),
				Ask: func(context.Context) (bool, string, error) {
					if answer == none {
						return false, "", errors.New("no answer")
					}
					return answer == us, answer, nil
				}})
			p.clock = func() Instant { return Instant{wall: processStart.Round(0).Add(now), monotonic: now} }
			for _, s := range test.steps {
				answer, now = s.answer, time.Duration(s.at)*time.Second
				if err := p.ask(t.Context()); err != nil {
					t.Fatal(err)
				}
				if writes := p.MayWrite() == nil; writes != s.writes {
					t.Fatalf("after %d s, it may write: %t", s.at, writes)
				}
			}
		})
	}
}

// TestPollExit: a process that does not stand by again ends, and says who is named.
func TestPollExit(t *testing.T) {
	answers := make(chan bool, 1)
	p := NewPoll(PollOptions{Name: "DNS name x", Log: logr.Discard(),
		Timings: Timings{LeaseDuration: time.Millisecond, RenewDeadline: time.Minute, RetryPeriod: 5 * time.Millisecond},
		Ask: func(context.Context) (bool, string, error) {
			select {
			case named := <-answers:
				return named, "the other one", nil
			default:
				return true, "us", nil
			}
		}})
	may := make(chan struct{})
	close(may)
	err := p.RunAfter(t.Context(), may, func(ctx context.Context) error {
		acting, done, ok := p.Act(ctx)
		if !ok || p.Token() != NoToken || !p.Preceded() {
			t.Errorf("it acts: %t, with token %q", ok, p.Token())
		}
		answers <- false
		<-acting.Done()
		done()
		<-ctx.Done()
		return ctx.Err()
	})
	if lost := (*LostError)(nil); !errors.As(err, &lost) || lost.Holder != "the other one" {
		t.Errorf("it ends with %v", err)
	}
}
