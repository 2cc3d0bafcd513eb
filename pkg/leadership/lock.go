package leadership

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// lock is what client-go's elector reads and writes the Lease by. It tells the tenure of renewals, and the elector nothing
// but the truth with one exception: a Lease that has run out, by what the standby saw of it, looks as if it had been
// released, since the elector would begin to count only now.
type lock struct {
	resourcelock.Interface
	tenure  *tenure
	standby *standby
	record  func(note string) // may be nil
	// abandon ends the elector's attempt to take the Lease.
	abandon context.CancelFunc
	// holder is who held the Lease when it was last read.
	holder string
	// failed is true if an attempt failed, and not because somebody else was faster.
	failed bool
	// refused is why the API server refused to have the Lease read or written; nil if it did not, or was not reached.
	refused error
}

// Get implements resourcelock.Interface.
func (l *lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.Interface.Get(ctx)
	if err != nil {
		l.noteRefusal(err)
		l.standby.denies(err)
		switch {
		case !apierrors.IsNotFound(err):
			l.giveUp(err)
		case l.tenure.begun() && l.tenure.mayWrite() != nil:
			l.lose("") // another may have led, and have deleted it
		}
		return nil, nil, err
	}
	l.holder = record.HolderIdentity
	switch {
	case !l.tenure.begun():
		if !l.standby.observe(record) {
			l.giveUp(nil)
		} else if l.holder != l.Identity() {
			record.HolderIdentity = ""
		}
	case l.holder != l.Identity():
		// Whoever has held it since, even where it is free again: a process that was out of touch for so long begins anew.
		l.lose(l.holder)
	}
	return record, raw, nil
}

// lose ends a tenure whose Lease may have been another's.
func (l *lock) lose(to string) {
	l.tenure.end(&LostError{Lease: l.Describe(), Holder: to, Deadline: l.tenure.deadline})
	l.abandon()
}

// Create implements resourcelock.Interface.
func (l *lock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	sent := l.tenure.clock()
	err := l.Interface.Create(ctx, record)
	return l.wrote(sent, err)
}

// Update implements resourcelock.Interface.
func (l *lock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if record.HolderIdentity != l.Identity() {
		return l.release(ctx, record)
	}
	sent := l.tenure.clock()
	err := l.Interface.Update(ctx, record)
	return l.wrote(sent, err)
}

func (l *lock) wrote(sent instant, err error) error {
	if err == nil {
		l.refused = nil
		l.tenure.renew(sent)
	} else {
		l.noteRefusal(err)
		l.standby.denies(err)
		l.giveUp(err)
	}
	return err
}

// noteRefusal notes a refusal that the next try will meet, too.
func (l *lock) noteRefusal(err error) {
	if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsInvalid(err) {
		l.refused = err
	}
}

// giveUp abandons the attempt to take the Lease, where err is nil since another process holds it. A leader's attempts to
// renew it go on.
func (l *lock) giveUp(err error) {
	if !l.tenure.begun() {
		l.failed = err != nil && !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err)
		l.abandon()
	}
}

// release gives the Lease back. The elector does so also where it gives up, and without looking at who holds the Lease by
// then: that would take it from the next leader. What was not renewed in time runs out, so that writes that are on their
// way have the time that is between renew deadline and lease duration.
func (l *lock) release(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if l.holder == l.Identity() && l.tenure.mayWrite() == nil {
		l.tenure.end(errReleased)
		return l.Interface.Update(ctx, record)
	}
	return nil
}

// RecordEvent implements resourcelock.Interface. That it leads no more, a process cannot write.
func (l *lock) RecordEvent(note string) {
	if l.record != nil && l.tenure.mayWrite() == nil {
		l.record(l.Identity() + " " + note)
	}
}
