package memory

import (
	"strconv"
	"testing"
	"time"

	"github.com/corollary-dev/corollary/pkg/canonical"
)

// TestContest plays a minute in which something calls for a write every 10 ms, with the default delays.
func TestContest(t *testing.T) {
	t.Parallel()
	s := Spacing{5 * time.Second, 5 * time.Minute}
	cause := func(n int) canonical.Sum { return canonical.Digest(strconv.Itoa(n)) }
	for _, row := range []struct {
		name, reason string
		// wanted is the cause and the content of the next write, after so many writes and steps of 10 ms.
		wanted       func(writes, step int) (canonical.Sum, string)
		least, limit int
	}{
		{"undone", "another writer undoes what is written", func(int, int) (canonical.Sum, string) { return cause(0), "h" }, 4, 15},
		{"feedback", "each write changes the desired object", func(w, _ int) (canonical.Sum, string) { return cause(0), strconv.Itoa(w) }, 4, 15},
		{"in turns", "made and deleted", func(w, _ int) (canonical.Sum, string) { return cause(0), strconv.Itoa(w % 2) }, 4, 15},
		{"heartbeat", "something that is not part of the desired object changes every second", func(_, step int) (canonical.Sum, string) { return cause(step / 100), "h" }, 4, 15},
		{"edits", "somebody changes the desired object every 10 ms", func(_, step int) (canonical.Sum, string) { return cause(step), strconv.Itoa(step) }, 6000, 6000},
		{"input", "somebody changes an input every second", func(_, step int) (canonical.Sum, string) { return cause(step / 100), strconv.Itoa(step / 100) }, 60, 150},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			var c Contest
			now, writes, last := time.Unix(0, 0), 0, ""
			for step := range 6000 {
				now = now.Add(10 * time.Millisecond)
				because, what := row.wanted(writes, step)
				if row.name == "input" && what == last {
					continue // in sync
				}
				if c.Wait(because, what, s, now) == 0 {
					c.Write(because, what, s, now)
					last = what
					writes++
				}
			}
			if writes < row.least || writes > row.limit {
				t.Errorf("%s: %d writes in a minute, want %d to %d", row.reason, writes, row.least, row.limit)
			}
		})
	}
}

// TestContestEnds: what settled once begins again, and progress that takes its time does not count as a contest.
func TestContestEnds(t *testing.T) {
	t.Parallel()
	s := Spacing{5 * time.Second, 5 * time.Minute}
	var c Contest
	now := time.Unix(0, 0)
	for range 20 {
		c.Write(canonical.Sum{}, "h", s, now)
	}
	if w := c.Wait(canonical.Sum{}, "h", s, now); w != 5*time.Minute {
		t.Errorf("the delay is %s", w)
	}
	if w := c.Wait(canonical.Sum{}, "h", s, now.Add(11*time.Minute)); w != 0 {
		t.Errorf("after it stood for longer than anybody needs to undo it, it still waits %s", w)
	}
	c = Contest{}
	for i := range 100 {
		if w := c.Wait(canonical.Sum{}, strconv.Itoa(i), s, now); w != 0 {
			t.Fatalf("step %d of a slow rollout waits %s", i, w)
		}
		c.Write(canonical.Sum{}, strconv.Itoa(i), s, now)
		now = now.Add(11 * time.Second)
	}
}

// TestRemovalsAreBounded: a mass deletion is not remembered forever.
func TestRemovalsAreBounded(t *testing.T) {
	t.Parallel()
	var r Removals
	s := Spacing{time.Second, time.Minute}
	now := time.Unix(0, 0)
	for i := range 10 * manyRemovals {
		now = now.Add(time.Second)
		r.Write(Place{Downstream: i}, s, now)
	}
	if len(r.by) > manyRemovals {
		t.Errorf("%d places are remembered", len(r.by))
	}
}

// TestManyRemovalsAreContested: whoever makes very many objects again is not followed faster than whoever makes one
// again.
func TestManyRemovalsAreContested(t *testing.T) {
	t.Parallel()
	var r Removals
	s := Spacing{time.Second, time.Minute}
	now := time.Unix(0, 0)
	for range contestedAfter + 1 {
		now = now.Add(time.Second)
		for i := range 3 * manyRemovals {
			r.Write(Place{Downstream: i}, s, now)
		}
	}
	for i := range 3 * manyRemovals {
		if r.Wait(Place{Downstream: i}, s, now) == 0 {
			t.Fatalf("the object at place %d was removed %d times in a row, and the next removal does not wait", i, contestedAfter+1)
		}
	}
}
