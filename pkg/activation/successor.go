package activation

import (
	"context"
	"fmt"
	"time"

	"github.com/corollary-dev/corollary/pkg/leadership"
)

// AwaitSuccessor waits until another process holds the lock than the one before, for as long as patience.
func AwaitSuccessor(
	ctx context.Context, store leadership.Store, before *State, patience time.Duration,
) (*State, error) {
	if last := store.LastToken(); before.Token >= last {
		return nil, &leadership.ExhaustedError{Lock: store.Describe(), Last: last}
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	last := before
	for {
		s, err := Read(ctx, store)
		switch {
		case err == nil && s.Holder != "" && s.Holder != before.Holder:
			return s, nil
		case ctx.Err() != nil:
			return nil, fmt.Errorf("no other cluster has become active within %s: is one running, and can it reach the %s? %s",
				patience,
				store.Describe(), whoHolds(last, before))
		case err != nil:
			return nil, err
		}
		last = s
		select {
		case <-ctx.Done():
		case <-time.After(readAgain):
		}
	}
}

// whoHolds says what became of a lock that no other cluster has taken.
func whoHolds(s, before *State) string {
	switch {
	case s.Holder == "":
		return "Nobody holds the lock now: the first cluster that can takes it, also " + before.Identity + " if it runs"
	case s.Asked:
		return s.Identity + " has not handed over yet, and does when it next renews the lock. If it does not run, the " +
			"lock runs out"
	}
	return s.Identity + " has taken the lock again"
}
