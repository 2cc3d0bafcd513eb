package locks

import (
	"context"
	"fmt"
	"time"

	"github.com/corollary-dev/corollary/pkg/leadership"
)

// lazy is a lock whose client is made when it is first needed, since making it sends requests. It is used by one
// goroutine at a time, as every Store.
type lazy struct {
	name  string
	open  func(ctx context.Context) (leadership.Store, error)
	store leadership.Store
}

// Describe implements leadership.Store.
func (l *lazy) Describe() string { return l.name }

// Get implements leadership.Store. Nothing else is called before it.
func (l *lazy) Get(ctx context.Context) (*leadership.Record, error) {
	if l.store == nil {
		store, err := l.open(ctx)
		if err != nil {
			return nil, fmt.Errorf("connecting to the %s: %w", l.name, err)
		}
		l.store = store
	}
	return l.store.Get(ctx)
}

// Create implements leadership.Store.
func (l *lazy) Create(ctx context.Context, record *leadership.Record) error {
	return l.store.Create(ctx, record)
}

// Update implements leadership.Store.
func (l *lazy) Update(ctx context.Context, record *leadership.Record) error {
	return l.store.Update(ctx, record)
}

// Watch implements leadership.Store.
func (l *lazy) Watch(ctx context.Context, seen func(*leadership.Record) bool) error {
	return l.store.Watch(ctx, seen)
}

// ServerTime implements Timed.
func (l *lazy) ServerTime() (time.Time, bool) {
	if s, ok := l.store.(Timed); ok {
		return s.ServerTime()
	}
	return time.Time{}, false
}

// LeastToken implements leadership.Store.
func (l *lazy) LeastToken() leadership.Token { return l.store.LeastToken() }

// LastToken implements leadership.Store: all of them write a record of text.
func (l *lazy) LastToken() leadership.Token { return lastToken }
