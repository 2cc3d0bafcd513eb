package leadership

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
)

// tolerated is how far a renewal may be in the future where clocks are as good as equal.
const tolerated = 3 * time.Second

// Doubt says why one reading of a lock does not show that its holder runs; empty if it was renewed in time. A holder
// writes the time of its own clock, so this compares two clocks, unlike Sight, which looks for long enough.
func Doubt(renewed time.Time, lasts time.Duration, now time.Time) string {
	silent := now.Sub(renewed)
	at := "by its own clock it last renewed the Lease at " + renewed.UTC().Format(time.RFC3339)
	switch {
	case silent < -tolerated:
		return fmt.Sprintf("%s, %s in the future by this machine's clock: the clocks differ; it runs if that time changes",
			at, duration.HumanDuration(-silent))
	case silent > lasts:
		return fmt.Sprintf("%s, %s ago by this machine's clock: it has stopped, or the clocks differ; it runs if that "+
			"time changes", at, duration.HumanDuration(silent))
	}
	return ""
}
