package leadership

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// lock is what client-go's elector reads and writes the record by. It reports renewals to the tenure, and the elector
// nothing but the truth with two exceptions: a lock that has run out, by what the standby saw of it, looks as if it had
// been released, since the elector would begin to count only now; and the token is the lock's own.
type lock struct {
	store   Store
	self    string // our identity
	tenure  *Tenure
	standby *standby
	record  func(note string) // may be nil
	// abandon ends the elector's attempt to take the lock.
	abandon context.CancelFunc
	// handsOver is true if it is given up when the record asks for that.
	handsOver bool
	// leads is true from the first record that was written as the holder.
	leads bool
	// holder is who held the lock when it was last read, read the token in that record.
	holder string
	read   Token
	// lasts is for how many seconds the record was renewed when it was last read.
	lasts int
	// token is the token of the current hold, greatest the greatest that was seen.
	token, greatest Token
	// failure is why an attempt failed; nil if it did not, or someone else was faster.
	failure error
	// refused is why the store refused to have the record read or written; nil if it did not, or was not reached.
	refused error
	// shared is how it is held together with others; nil if it is not.
	shared *shared
}

// begin is called before each attempt to take the lock.
func (l *lock) begin(abandon context.CancelFunc) {
	l.abandon, l.failure, l.leads, l.holder, l.read = abandon, nil, false, "", NoToken
}

// Identity implements resourcelock.Interface.
func (l *lock) Identity() string { return l.self }

// Describe implements resourcelock.Interface.
func (l *lock) Describe() string { return l.store.Describe() }

// Get implements resourcelock.Interface.
func (l *lock) Get(ctx context.Context) (*Record, []byte, error) {
	record, err := l.store.Get(ctx)
	if err != nil {
		l.noteRefusal(err)
		l.standby.denies(err)
		switch {
		case !apierrors.IsNotFound(err):
			l.giveUp(err)
		case !l.leads && l.standby.deleted() > 0:
			err = Conflict(l.Describe()) // or the elector would create it again at once
			l.giveUp(err)
		case l.leads && l.tenure.MayWrite() != nil:
			l.lose("") // another may have led, and have deleted it
		}
		return nil, nil, err
	}
	raw, err := json.Marshal(record)
	if err != nil {
		return nil, nil, fmt.Errorf("writing the record of the %s: %w", l.Describe(), err)
	}
	l.holder, l.read, l.lasts = record.HolderIdentity, Token(record.LeaderTransitions), record.LeaseDurationSeconds
	if l.read < l.store.LastToken() { // else someone wrote it, and may take it back
		l.greatest = max(l.greatest, l.read)
	}
	switch {
	case !l.leads:
		if !l.standby.observe(record) {
			l.giveUp(nil)
		} else if l.holder != l.self {
			record.HolderIdentity = ""
		}
	case l.holder == AskedToHandOver(l.self) && l.handsOver:
		l.handOver(ctx, record)
	case l.holder != l.self:
		// Whoever has held it since, even where it is free again: a process that was out of touch for so long begins again.
		l.lose(l.holder)
	}
	return record, raw, nil
}

// lose ends a tenure whose lock may have been another's.
func (l *lock) lose(to string) {
	l.tenure.End(&LostError{Lock: l.Describe(), Holder: to, Deadline: l.tenure.deadline,
		Early: l.tenure.MayWrite() == nil})
	l.abandon()
}

// handOverMark is what a request to hand over adds to the holder in the record. To all others, someone holds the lock
// until its last renewal has run out, or it is released.
const handOverMark = " (asked to hand over)"

// AskedToHandOver is the holder in a record that asks a holder to hand over. HolderOf is the opposite.
func AskedToHandOver(holder string) string { return holder + handOverMark }

// HolderOf is the holder in a record, whether it is asked to hand over or not.
func HolderOf(holder string) (name string, asked bool) {
	return strings.CutSuffix(holder, handOverMark)
}

// handOver gives up a lock. What was begun is finished first.
func (l *lock) handOver(ctx context.Context, record *Record) {
	l.tenure.leave(ctx)
	l.tenure.End(errHandedOver)
	now := metav1.NewTime(time.Now())
	free := Record{RenewTime: now, AcquireTime: now, LeaseDurationSeconds: 1, LeaderTransitions: record.LeaderTransitions}
	if err := l.store.Update(ctx, &free); err != nil {
		l.tenure.log.Info("the lock could not be handed over at once: it runs out", "lock",
			l.Describe(), "error", err.Error())
	}
	l.abandon()
}

// Create implements resourcelock.Interface.
func (l *lock) Create(ctx context.Context, record Record) error {
	return l.write(ctx, &record, l.store.Create)
}

// Update implements resourcelock.Interface.
func (l *lock) Update(ctx context.Context, record Record) error {
	if record.HolderIdentity != l.self {
		return l.release(ctx, &record)
	}
	return l.write(ctx, &record, l.store.Update)
}

// write writes a record of ours. A new hold gets a greater token than all before; one that nobody else has interrupted
// keeps its own.
func (l *lock) write(ctx context.Context, record *Record, write func(context.Context, *Record) error) error {
	token := l.token
	switch {
	case l.leads && l.tenure.lost() != nil:
		return Conflict(l.Describe()) // the elector has not noticed yet that it is over
	case l.leads:
	case l.holder == l.self:
		token = l.read
	case max(l.greatest, l.read) >= l.store.LastToken():
		err := &ExhaustedError{Lock: l.Describe(), Last: l.store.LastToken()}
		l.giveUp(err)
		return err
	default:
		token = max(l.greatest+1, l.store.LeastToken())
	}
	if l.shared != nil {
		if !l.leads {
			l.shared.joined = l.holder == l.self
		} else if renewed, err := l.renewedByAnother(ctx, record); renewed || err != nil {
			return err
		}
		l.longest(record)
	}
	record.LeaderTransitions = int(token)
	sent := l.tenure.clock()
	err := write(ctx, record)
	if err != nil {
		l.noteRefusal(err)
		l.standby.denies(err)
		l.giveUp(err)
		return err
	}
	if !l.leads {
		l.leads, l.token, l.greatest = true, token, max(l.greatest, token)
		l.standby.exists, l.standby.goneSince = true, time.Time{}
		l.tenure.Begin(token, l.standby.sawLeader)
	}
	l.refused = nil
	if l.shared != nil {
		l.shared.looked, l.shared.renewed = sent, record.RenewTime.UnixMicro()
	}
	l.tenure.Renew(sent)
	return nil
}

// noteRefusal notes a refusal that the next try will meet, too.
func (l *lock) noteRefusal(err error) {
	if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsInvalid(err) {
		l.refused = err
	}
}

// giveUp abandons the attempt to take the lock, where err is nil since another process holds it. A leader's attempts to
// renew it go on.
func (l *lock) giveUp(err error) {
	if !l.leads {
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
			l.failure = err
		}
		l.abandon()
	}
}

// release gives the lock back. The elector does so also where it gives up, and without looking at who holds the lock by
// then: that would take it from the next leader. What was not renewed in time runs out, so that writes that are on
// their way have the time that is between renew deadline and lease duration.
func (l *lock) release(ctx context.Context, record *Record) error {
	isRetry := errors.Is(l.tenure.lost(), errReleased) // a renewal that was on its way made the first try a conflict
	if l.holder == l.self && (isRetry || l.tenure.MayWrite() == nil) {
		l.tenure.End(errReleased)
		if l.shared != nil && l.shared.Others(ctx) {
			return nil
		}
		return l.store.Update(ctx, record)
	}
	return nil
}

// RecordEvent implements resourcelock.Interface. That it leads no more, a process cannot write.
func (l *lock) RecordEvent(note string) {
	if l.record != nil && l.tenure.MayWrite() == nil {
		l.record(l.self + " " + note)
	}
}
