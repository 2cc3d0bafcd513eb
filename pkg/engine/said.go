package engine

import (
	"maps"
	"time"

	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/pipeline"
)

// said is what was written to an upstream's status last. Writing the same once more means that somebody else has written
// over it.
type said struct {
	sum drift.Sum
	// undone is how often in a row that happened, last when it was written.
	undone int
	last   time.Time
}

// statusContestedAfter is how many times in a row somebody may write over our status before ours is spaced out: two
// writers of one condition would else go on as fast as the API server lets them.
const statusContestedAfter = 3

// statusWait is how long writing the status that has this digest waits for the sake of another writer.
func (s *session) statusWait(said *said, sum drift.Sum, now time.Time) time.Duration {
	if said.sum != sum || said.undone < statusContestedAfter {
		return 0
	}
	retry := s.pipeline.Config.Retry
	next := said.last.Add(pipeline.Backoff(time.Duration(retry.MinDelay), time.Duration(retry.MaxDelay), said.undone-statusContestedAfter))
	return max(next.Sub(now), 0)
}

// wrote takes note of a write; calm is how long it must have stood for the count to start over.
func (s *said) wrote(sum drift.Sum, now time.Time, calm time.Duration) {
	if s.sum != sum || now.Sub(s.last) > calm {
		s.undone = 0
	} else {
		s.undone++
	}
	s.sum, s.last = sum, now
}

// saying is the digest of what a status says for us, times and the conditions of others aside.
func (l *look) saying(want map[string]any) drift.Sum {
	out := maps.Clone(l.pipeline.OwnConditions(want))
	list, _ := out["conditions"].([]any)
	conditions := make(map[string]any, len(list))
	for _, item := range list {
		if c, ok := item.(map[string]any); ok {
			c = maps.Clone(c)
			delete(c, "lastTransitionTime")
			kind, _ := c["type"].(string)
			conditions[kind] = c
		}
	}
	out["conditions"] = conditions
	return drift.Digest(out)
}
