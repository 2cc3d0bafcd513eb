package leadership

import "time"

// Sight is what a process sees of a lock that another one holds. It counts by the clock of the process that looks: what
// others wrote only distinguishes one renewal from another.
type Sight struct {
	// seen is the last renewal that was seen, since is when, and lasts for how long it is good.
	seen  renewal
	since time.Time
	lasts time.Duration
}

// renewal identifies a renewal.
type renewal struct {
	holder      string
	renewed     int64 // microseconds, as precise as a record is
	transitions int
}

// Observe takes in what the record says now. A change by nobody who holds it, or gives it back, is not believed: by
// hand, a holder was taken out, or how long it lasts was changed. Whoever held it has not found out yet.
func (s *Sight) Observe(record *Record, now time.Time) {
	r := renewal{holder: record.HolderIdentity, renewed: record.RenewTime.UnixMicro(),
		transitions: record.LeaderTransitions}
	if s.Held(now) && r.renewed == s.seen.renewed {
		return
	}
	if s.since.IsZero() || s.seen != r {
		s.seen, s.since = r, now
	}
	s.lasts = time.Duration(record.LeaseDurationSeconds) * time.Second
}

// Holder is who held it when it was seen last; empty if it was released.
func (s *Sight) Holder() string { return s.seen.holder }

// Left is for how long it is taken, if it is not renewed.
func (s *Sight) Left(now time.Time) time.Duration { return s.lasts - now.Sub(s.since) }

// Held reports whether it was held when it was seen last, and what it was renewed for has not passed.
func (s *Sight) Held(now time.Time) bool { return s.seen.holder != "" && s.Left(now) > 0 }
