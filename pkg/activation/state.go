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
	// Since is when it took the lock, Renewed when it last renewed it, by its own clock; LeaseDuration is how long that is good.
	Since, Renewed time.Time
	LeaseDuration  time.Duration
	Token          leadership.Token

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
	s := &State{Since: record.AcquireTime.Time, Renewed: record.RenewTime.Time, Token: leadership.Token(record.LeaderTransitions),
		LeaseDuration: time.Duration(record.LeaseDurationSeconds) * time.Second, record: record}
	s.Holder, s.Asked = leadership.HolderOf(record.HolderIdentity)
	s.Identity = identityOf(record.HolderIdentity)
	return s, nil
}

// ErrNobody says that nobody holds a lock.
var ErrNobody = errors.New("nobody holds the lock: no cluster is active")

// AskToHandOver asks the holder of a lock to finish what it does and release the lock. It does so when it next renews it.
func AskToHandOver(ctx context.Context, store leadership.Store) (*State, error) {
	s, err := Read(ctx, store)
	switch {
	case err != nil:
		return nil, err
	case s.Holder == "":
		return nil, ErrNobody
	case s.Asked:
		return s, nil
	}
	asked := *s.record
	asked.HolderIdentity = leadership.AskedToHandOver(s.Holder)
	return s, s.rewrite(ctx, store, &asked)
}

// TakeAway releases a lock that a process holds, which may still write until it finds out.
func TakeAway(ctx context.Context, store leadership.Store, holder string) (*State, error) {
	s, err := Read(ctx, store)
	switch {
	case err != nil:
		return nil, err
	case s.Holder == "":
		return nil, ErrNobody
	case s.Holder != holder:
		return nil, fmt.Errorf("%s holds the lock, not %s", s.Holder, holder)
	}
	now := metav1.NowMicro()
	free := leadership.Record{LeaseDurationSeconds: 1, AcquireTime: metav1.NewTime(now.Time), RenewTime: metav1.NewTime(now.Time),
		LeaderTransitions: s.record.LeaderTransitions}
	return s, s.rewrite(ctx, store, &free)
}

func (s *State) rewrite(ctx context.Context, store leadership.Store, record *leadership.Record) error {
	if err := store.Update(ctx, record); err != nil {
		return fmt.Errorf("writing %s: %w", store.Describe(), err)
	}
	return nil
}
