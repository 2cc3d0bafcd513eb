package leadership

import (
	"context"
	"time"
)

// Shared says how a lock is held by several processes together. Each of them has a tenure of it, and a process that
// takes part under another name waits for all of them.
type Shared struct {
	// Others reports whether another process may hold it, so that it is not released. It is called after the record was
	// read: a process that takes part later than the answer says must have written the record since.
	Others func(ctx context.Context) bool
}

// shared is what a process knows of a lock that it holds together with others. To renew it, each looks whether another
// process has renewed it since it last looked, and writes only if not: there is one write in a retry period, whatever
// their number is.
type shared struct {
	Shared
	// wait is how long a process may have to wait until it has looked again.
	wait time.Duration
	// looked is when the last look was sent, or the last write of our own, and renewed the renewal that was seen, in
	// microseconds.
	looked  Instant
	renewed int64
	// joined is true if others held it when it was taken.
	joined bool
}

// mostBelieved is how many times one's own lease duration that of another process may be.
const mostBelieved = 10

// renewedByAnother looks whether the write of record, which renews it, is not needed. A renewal that is seen was sent
// after the look before.
func (l *lock) renewedByAnother(ctx context.Context, record *Record) (bool, error) {
	s, sent := l.shared, l.tenure.clock()
	there, err := l.store.Get(ctx)
	isRead := err == nil
	switch {
	case !isRead: // the write that follows says what is wrong
		return false, nil
	case there.HolderIdentity != l.self:
		l.lose(there.HolderIdentity)
		return false, Conflict(l.Describe())
	}
	l.lasts = there.LeaseDurationSeconds
	before, renewed := s.looked, there.RenewTime.UnixMicro()
	if renewed == s.renewed || there.LeaseDurationSeconds < record.LeaseDurationSeconds {
		return false, nil
	}
	s.looked, s.renewed = sent, renewed
	if sent.since(before)+s.wait >= l.tenure.deadline {
		return false, nil
	}
	l.tenure.Renew(before)
	return true, nil
}

// longest has a record that others share last as long as that of any of them: those outside wait for the process that
// writes longest after a renewal.
func (l *lock) longest(record *Record) {
	if l.leads || l.holder == l.self {
		record.LeaseDurationSeconds = max(record.LeaseDurationSeconds, min(l.lasts, mostBelieved*record.LeaseDurationSeconds))
	}
}

// Joined reports, of a lock that is shared, whether others held it when this process took it.
func (e *Election) Joined() bool { return e.shared != nil && e.shared.joined }
