package testkit

import (
	"testing"
	"time"
)

// pollInterval is how often a condition is looked at.
const pollInterval = 20 * time.Millisecond

// Eventually looks at the condition until it holds; after the timeout it fails
// the test with the last reason why it did not. The condition runs in the
// test's goroutine, so it may itself fail the test.
func Eventually(t testing.TB, timeout time.Duration, condition func() (ok bool, why string)) {
	t.Helper()
	begin := time.Now()
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		ok, why := condition()
		if ok {
			return
		}
		if time.Since(begin) > timeout {
			t.Fatalf("after %s still not: %s", timeout, why)
		}
		select {
		case <-ticker.C:
		case <-t.Context().Done():
			t.Fatalf("the test ended while waiting: %s", why)
		}
	}
}

// Never looks at the condition for the whole duration and fails the test, with
// the reason, if it holds once. It costs that time on every run: prefer to wait
// for something that proves the absence.
func Never(t testing.TB, duration time.Duration, condition func() (bad bool, why string)) {
	t.Helper()
	begin := time.Now()
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		if bad, why := condition(); bad {
			t.Fatalf("after %s: %s", time.Since(begin).Round(time.Millisecond), why)
		}
		if time.Since(begin) > duration {
			return
		}
		select {
		case <-ticker.C:
		case <-t.Context().Done():
			return
		}
	}
}
