package leadership

import "time"

// Instant is a moment by two clocks. The monotonic one cannot be set back, but stops while a machine is suspended;
// the wall clock goes on then, but can be set back.
type Instant struct {
	wall      time.Time     // without a monotonic part
	monotonic time.Duration // since the process began
}

var processStart = time.Now()

// Now is the current moment.
func Now() Instant {
	t := time.Now()
	return Instant{wall: t.Round(0), monotonic: t.Sub(processStart)}
}

// atLeast is how much time has certainly passed from before until i, however the wall clock was set.
func (i Instant) atLeast(before Instant) time.Duration { return i.monotonic - before.monotonic }

// since is how much time may have passed from before until i, by the clock that says more.
func (i Instant) since(before Instant) time.Duration {
	return max(i.wall.Sub(before.wall), i.monotonic-before.monotonic)
}
