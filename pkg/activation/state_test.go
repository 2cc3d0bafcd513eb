package activation

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestReadHolder: whether the holder is active is known, however far its clock is from ours. The time is not real.
func TestReadHolder(t *testing.T) {
	const lease, deadline, every = 15 * time.Second, 10 * time.Second, 2 * time.Second
	tests := []struct {
		reason string
		ahead  time.Duration // the holder's clock
		silent time.Duration // since its last renewal, and for good
		dead   bool
		active bool
	}{
		{"clocks that agree", 0, time.Second, false, true},
		{"ten minutes ahead", 10 * time.Minute, time.Second, false, true},
		{"ten minutes behind", -10 * time.Minute, time.Second, false, true},
		{"died a minute ago", 0, time.Minute, true, false},
		{"died a minute ago, ten minutes ahead", 10 * time.Minute, time.Minute, true, false},
		{"died a minute ago, ten minutes behind", -10 * time.Minute, time.Minute, true, false},
	}
	for _, test := range tests {
		synctest.Test(t, func(t *testing.T) {
			begin := time.Now()
			m := &memory{}
			m.before = func() error {
				renewed := begin.Add(-test.silent)
				if !test.dead {
					renewed = renewed.Add(time.Since(begin).Truncate(every))
				}
				m.record = held("eu_1", renewed.Add(test.ahead))
				m.record.LeaseDurationSeconds = int(lease.Seconds())
				return nil
			}
			s, err := ReadHolder(t.Context(), m, deadline)
			if err != nil {
				t.Fatal(err)
			}
			if s.RanOut(time.Now()) == test.active {
				t.Errorf("%s: silent for %s", test.reason, s.Silent(time.Now()))
			}
			if took := time.Since(begin); took > deadline+readAgain {
				t.Errorf("%s: it takes %s", test.reason, took)
			}
			if !test.dead && test.ahead != 0 && (s.Ahead-test.ahead).Abs() > every {
				t.Errorf("%s: the clock is %s ahead", test.reason, s.Ahead)
			}
		})
	}
}

// TestReadHolderEnds: a command that is stopped waits no longer for a renewal, and says what it has read.
func TestReadHolderEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	m := &memory{record: held("eu_1", time.Now().Add(-time.Hour))}
	m.before = func() error { cancel(); return nil }
	if s, err := ReadHolder(ctx, m, time.Hour); err != nil || s.Identity != "eu" || !s.Since.Equal(metav1.NewTime(s.Renewed).Time) {
		t.Errorf("it reads %+v, %v", s, err)
	}
}
