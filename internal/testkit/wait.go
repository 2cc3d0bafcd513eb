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
