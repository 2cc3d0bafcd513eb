package leadership

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/leaderelection"
)

// standby waits for the lock to be free. It watches the record, so that it knows to the millisecond when it was renewed
// last and that it was released; client-go's elector would ask every few seconds only. Where it may not watch, or is
// there for once only, it asks too.
type standby struct {
	store   Store
	self    string // our identity
	retry   time.Duration
	lease   time.Duration
	once    bool // whether it reads instead of watching, and a refusal ends the wait
	waiting func(holder string, lasts time.Duration)
	renewed func(holder string)
	log     logr.Logger

	Sight
	// exists is true once the record was read or written, and goneSince is when it was first found not to exist since
	// then.
	exists    bool
	goneSince time.Time
	// sawLeader is true once another process was seen to hold it.
	sawLeader bool
	// reported is the error that was logged last.
	reported string
	// denied is the refusal that ends the wait; nil while there is none.
	denied error
}

// observe takes in what the record says and reports whether it is free: released, ours, or not renewed for as long as
// it lasts.
func (s *standby) observe(record *Record) bool {
	s.exists, s.goneSince = true, time.Time{}
	before := s.seen
	if before.holder == s.self {
		s.lasts = 0 // our own edits are ours
	}
	s.Observe(record, time.Now())
	s.sawLeader = s.sawLeader || s.taken()
	switch {
	case !s.taken():
	case s.seen.holder != before.holder && s.waiting != nil:
		s.waiting(s.seen.holder, s.lasts)
	case s.seen.holder == before.holder && s.seen != before && s.renewed != nil:
		s.renewed(s.seen.holder)
	}
	return !s.taken()
}

// left is for how long the lock is taken, if it is not renewed.
func (s *standby) left() time.Duration { return s.Left(time.Now()) }

// taken reports whether another process held the lock when it was seen last, and what it was renewed for has not
// passed.
func (s *standby) taken() bool { return s.seen.holder != s.self && s.Held(time.Now()) }

// deleted is for how long a record that is gone still counts as held: whoever held it, seen or not, writes until it
// finds out, and then creates it again. If there never was one, nobody held it.
func (s *standby) deleted() time.Duration {
	if !s.exists {
		return 0
	}
	if s.goneSince.IsZero() {
		s.goneSince = time.Now()
	}
	return max(s.lease, s.lasts) - time.Since(s.goneSince)
}

// forget is called when this process has held the lock: what it saw before says nothing any more.
func (s *standby) forget() { s.seen, s.since, s.lasts, s.reported = renewal{}, time.Time{}, 0, "" }

// wait returns true once the lock is free, and false once ctx is done or the lock is denied.
func (s *standby) wait(ctx context.Context) bool {
	for ctx.Err() == nil {
		record, err := s.store.Get(ctx)
		switch {
		case apierrors.IsNotFound(err) && s.deleted() > 0:
			s.pause(ctx, min(s.retry, s.deleted()))
		case apierrors.IsNotFound(err):
			return true
		case s.denies(err):
			return false
		case err != nil:
			s.logTrouble(ctx, err, "the lock cannot be read, will retry")
			s.pause(ctx, s.retry)
			continue
		case (s.observe(record) || s.watch(ctx)) && !s.exhausted(ctx):
			return ctx.Err() == nil
		case s.denied != nil:
			return false
		}
	}
	return false
}

// exhausted reports whether a lock that is free cannot be taken, because no token is left. It reports that, and waits
// for someone to write another one.
func (s *standby) exhausted(ctx context.Context) bool {
	last := s.store.LastToken()
	if s.seen.holder == s.self || Token(s.seen.transitions) < last || ctx.Err() != nil {
		return false
	}
	err := &ExhaustedError{Lock: s.store.Describe(), Last: last}
	if s.once {
		s.denied = err
		return true
	}
	s.logTrouble(ctx, err, "the lock cannot be taken")
	s.pause(ctx, s.retry)
	return true
}

// pollsInRetryPeriod is how often a lock that nobody can watch is read: a renewal is then noticed so little later that,
// with the jitter of pause, the lock is taken within a retry period after it has run out.
const pollsInRetryPeriod = 4

// watch watches the record. It returns true when the lock is free, and false if it is to be read again.
func (s *standby) watch(ctx context.Context) bool {
	if s.once {
		s.pause(ctx, min(s.retry, s.left()))
		return false
	}
	begin, free := time.Now(), false
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	runsOut := time.AfterFunc(s.left(), cancel)
	defer runsOut.Stop()
	err := s.store.Watch(ctx, func(record *Record) bool {
		s.reported, free = "", s.observe(record)
		runsOut.Reset(s.left())
		return free
	})
	switch {
	case free || s.left() <= 0:
		return true
	case errors.Is(err, ErrUnwatched) && err != ErrUnwatched: //nolint:errorlint // there is more in it: why
		s.logTrouble(ctx, err, "the lock cannot be watched: polling it, so its release is noticed later")
		s.pause(ctx, min(s.retry, s.left()))
	case err != nil: // nothing can be watched there
		s.pause(ctx, min(s.retry/pollsInRetryPeriod, s.left()))
	case time.Since(begin) < s.retry: // every watch ends now and then
		s.pause(ctx, min(s.retry, s.left()))
	}
	return false
}

// yield lets others take the lock first: it returns once one of them has it, or after d.
func (s *standby) yield(ctx context.Context, d time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	for ctx.Err() == nil {
		record, err := s.store.Get(ctx)
		if err == nil && record.HolderIdentity != "" && record.HolderIdentity != s.self {
			return
		}
		s.pause(ctx, s.retry/pollsInRetryPeriod)
	}
}

// denies reports whether err is a refusal that ends the wait.
func (s *standby) denies(err error) bool {
	if s.once && (apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err)) {
		s.denied = err
		return true
	}
	return false
}

// logTrouble logs trouble once, until there is another one.
func (s *standby) logTrouble(ctx context.Context, err error, says string) {
	if ctx.Err() == nil && s.reported != err.Error() {
		s.reported = err.Error()
		s.log.Info(says, "error", err.Error())
	}
}

// pause lets at least d pass, and a little more: those that wait together shall not ask together.
func (s *standby) pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d + rand.N(time.Duration(leaderelection.JitterFactor*float64(max(d, 0)))+1))
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
