package leadership

import "time"

// instant is a moment by two clocks. The monotonic one cannot be set back, but stands still while a machine is suspended;
// the wall clock goes on then, but can be set back.
type instant struct {
	wall      time.Time     // without a monotonic part
	monotonic time.Duration // since the process began
}

var processStart = time.Now()

func now() instant {
	t := time.Now()
	return instant{wall: t.Round(0), monotonic: t.Sub(processStart)}
}

// since is how much time has passed from before until i, by the clock that says more.
func (i instant) since(before instant) time.Duration {
	return max(i.wall.Sub(before.wall), i.monotonic-before.monotonic)
}
