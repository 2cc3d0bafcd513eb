package activation

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corollary-dev/corollary/pkg/leadership"
)

// State is what a lock says.
type State struct {
	// Holder is the process that holds the lock, Identity that of its cluster; both are empty while nobody does.
	Holder, Identity string
	// Asked is true if it was asked to hand over.
	Asked bool
	// Since is when it took the lock, Renewed when it last renewed it, by its own clock; LeaseDuration is how long that is
	// good.
	Since, Renewed time.Time
	LeaseDuration  time.Duration
	Token          leadership.Token
	// Ahead is how far the holder's clock is ahead of ours, if it was seen to renew the lock; else 0.
	Ahead time.Duration
	// watched is true if the lock was read for the renew deadline, and not renewed.
	watched bool

	record *leadership.Record
}

// Read reads a lock. A lock that nobody has held yet is not an error.
func Read(ctx context.Context, store leadership.Store) (*State, error) {
	record, err := store.Get(ctx)
	if apierrors.IsNotFound(err) {
		return &State{Token: leadership.NoToken}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", store.Describe(), err)
	}
	s := &State{Since: record.AcquireTime.Time, Renewed: record.RenewTime.Time,
		Token:         leadership.Token(record.LeaderTransitions),
		LeaseDuration: time.Duration(record.LeaseDurationSeconds) * time.Second, record: record}
	s.Holder, s.Asked = leadership.HolderOf(record.HolderIdentity)
	s.Identity = identityOf(record.HolderIdentity)
	return s, nil
}

// Silent is for how long the holder has not renewed the lock: by its own clock, where that is not known to differ from
// ours.
func (s *State) Silent(now time.Time) time.Duration { return now.Sub(s.Renewed) + s.Ahead }

// RanOut reports whether the holder has not renewed the lock for so long that it writes no more.
func (s *State) RanOut(now time.Time) bool { return s.watched || s.Silent(now) > s.LeaseDuration }

// readAgain is how often a lock is read while a renewal is awaited, and ahead how far a renewal may be in the future,
// by our clock.
const (
	readAgain = 200 * time.Millisecond
	ahead     = time.Second
)

// ReadHolder is Read for whoever wants to know whether the holder is active. Clocks may differ, so a lock that seems to
// have run out, or to be renewed in the future, is read until it is renewed, or the renew deadline has passed.
func ReadHolder(ctx context.Context, store leadership.Store, renewDeadline time.Duration) (*State, error) {
	first, err := Read(ctx, store)
	if err != nil || first.Holder == "" || first.Token == leadership.NoToken {
		return first, err
	}
	if silent := first.Silent(time.Now()); silent >= -ahead && silent <= first.LeaseDuration {
		return first, nil
	}
	for end := time.Now().Add(renewDeadline); ctx.Err() == nil && time.Now().Before(end); {
		select {
		case <-ctx.Done():
		case <-time.After(readAgain):
		}
		s, err := Read(ctx, store)
		switch {
		case err != nil:
			continue // it was read once, and may be again
		case s.Holder != first.Holder || s.Token != first.Token || !s.Renewed.Equal(first.Renewed):
			s.Ahead = time.Until(s.Renewed)
			return s, nil
		}
	}
	first.watched = ctx.Err() == nil
	return first, nil
}

// ErrNobody says that nobody holds a lock.
var ErrNobody = errors.New("nobody holds the lock: no cluster is active")

// AskToHandOver asks the holder of a lock to finish what it does and release the lock. It does so when it next renews
// it.
func AskToHandOver(ctx context.Context, store leadership.Store) (*State, error) {
	return rewrite(ctx, store, func(now, before *State) (*leadership.Record, error) {
		if now.Asked || now.Holder != before.Holder {
			return nil, nil
		}
		asked := *now.record
		asked.HolderIdentity = leadership.AskedToHandOver(now.Holder)
		return &asked, nil
	})
}

// TakeAway releases a lock that a process holds, which may still write until it finds out.
func TakeAway(ctx context.Context, store leadership.Store, holder string) (*State, error) {
	return rewrite(ctx, store, func(now, _ *State) (*leadership.Record, error) {
		if now.Holder != holder {
			return nil, fmt.Errorf("%s holds the lock, not %s", now.Holder, holder)
		}
		at := metav1.Now()
		return &leadership.Record{LeaseDurationSeconds: 1, AcquireTime: at, RenewTime: at,
			LeaderTransitions: now.record.LeaderTransitions}, nil
	})
}

// rewrites is how often a lock is read and written until no renewal of its holder comes in between.
const rewrites = 10

// rewrite writes what change makes of a lock that a process holds, unless that is nil, and returns what the lock said
// before. It writes nothing if the process has released the lock meanwhile.
func rewrite(
	ctx context.Context, store leadership.Store, change func(now, before *State) (*leadership.Record, error),
) (before *State, err error) {
	for try := 1; ; try++ {
		now, err := Read(ctx, store)
		switch {
		case err != nil:
			return nil, err
		case before == nil && now.Holder == "":
			return nil, ErrNobody
		case now.Holder == "":
			return before, nil
		case before == nil:
			before = now
		}
		record, err := change(now, before)
		if record == nil || err != nil {
			return before, err
		}
		err = store.Update(ctx, record)
		if err == nil {
			return before, nil
		}
		if try == rewrites || !apierrors.IsConflict(err) {
			return nil, fmt.Errorf("writing %s: %w", store.Describe(), err)
		}
	}
}
