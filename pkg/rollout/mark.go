package rollout

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/marks"
)

// Mark says on an object in which rollout it was applied: that of a config, which began at a time. The zero value is
// none.
type Mark struct {
	// Config identifies the config: the beginning of its digest.
	Config string
	// Began is when the rollout began, in seconds since 1970.
	Began int64
	// Own means that no step has moved the upstream: it was edited, or is new, or the config does not change it.
	Own bool
	// outdated means that its object has another document than the config gives.
	outdated bool
}

const ownSuffix = "own"

// String writes a mark as CONFIG.SECONDS, and .own behind it.
func (m Mark) String() string {
	text := m.Config + "." + strconv.FormatInt(m.Began, 10)
	if m.Own {
		text += "." + ownSuffix
	}
	return text
}

// parseMark reads what String wrote; the zero value for anything else, and for a time that has yet to come: who may
// write an object may write any text there.
func parseMark(text string, now time.Time) Mark {
	parts := strings.Split(text, ".")
	if len(parts) < 2 || len(parts) > 3 || len(parts) == 3 && parts[2] != ownSuffix {
		return Mark{}
	}
	began, err := strconv.ParseInt(parts[1], 10, 64)
	if err != nil || parts[0] == "" || began > now.Add(clockSkew).Unix() {
		return Mark{}
	}
	return Mark{Config: parts[0], Began: began, Own: len(parts) == 3}
}

// clockSkew is how far the clocks of two processes may differ.
const clockSkew = time.Minute

// markOf is the mark of a live object.
func markOf(s *operator.Settings, live *drift.Live, now time.Time) Mark {
	metadata, _ := live.Kept["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	text, _ := annotations[marks.RolloutKey(s)].(string)
	return parseMark(text, now)
}

// ConfigName is how marks and commands name a config, by its digest.
func ConfigName(digest string) string { return digest[:min(len(digest), 12)] }

// Control is what a person has decided about the rollout of a config.
type Control struct {
	Config string
	// Paused holds the rollout where it is; Reverts gives back what was moved.
	Paused, Reverts bool
	// At is when it was decided, in seconds since 1970: a promotion counts for no rollout that begins later.
	At int64
	// Promoted is the number of steps that are gone in any case, whatever has failed.
	Promoted int
}

// The verbs of a Control.
const (
	Pause   = "pause"
	Promote = "promote"
	Revert  = "revert"
)

// String writes a control as CONFIG VERB TIME, and the number of steps behind promote.
func (c Control) String() string {
	switch {
	case c.Reverts:
		return fmt.Sprintf("%s %s %d", c.Config, Revert, c.At)
	case c.Paused:
		return fmt.Sprintf("%s %s %d", c.Config, Pause, c.At)
	}
	return fmt.Sprintf("%s %s %d %d", c.Config, Promote, c.At, c.Promoted)
}

// parseControl reads what String wrote. ok is false for anything else; then the config that it names is known, if any.
func parseControl(text string) (c Control, ok bool) {
	var verb string
	n, _ := fmt.Sscan(text, &c.Config, &verb, &c.At)
	switch {
	case n == 0:
		return c, true
	case n == 3 && verb == Revert:
		c.Reverts = true
	case n == 3 && verb == Pause:
		c.Paused = true
	case n == 3 && verb == Promote:
		_, err := fmt.Sscan(text, &c.Config, &verb, &c.At, &c.Promoted)
		return c, err == nil
	default:
		return c, false
	}
	return c, true
}
