package rollout

import (
	"slices"
	"time"

	"github.com/corollary-dev/corollary/pkg/operator"
)

// survey is what is found of all upstreams before any is changed by a config.
type survey struct {
	config string
	// found are those that the config may concern, and keys the texts that they are sorted by.
	found map[operator.Ref]Surveyed
	keys  map[operator.Ref]string
	// ours is when the newest rollout of the config began, others that of any other one.
	ours, others int64
}

func (v *survey) note(ref operator.Ref, s Surveyed, order string) {
	delete(v.found, ref)
	concerns := s.Changes || s.Refuses != "" || !s.Ready
	for _, m := range s.marks {
		if m.Config == v.config {
			v.ours, concerns = max(v.ours, m.Began), true
		} else {
			v.others = max(v.others, m.Began)
		}
	}
	if concerns {
		v.found[ref], v.keys[ref] = s, order
	}
}

// mark is that of the rollout that goes on, or begins now.
func (v *survey) mark(now time.Time) Mark {
	if v.ours > v.others {
		return Mark{Config: v.config, Began: v.ours}
	}
	return Mark{Config: v.config, Began: max(now.Unix(), v.others+1)}
}

// movedIn reports whether an upstream was moved in this rollout, and by its own edit. One that the newest rollout
// before has moved, and that is not Ready, counts, too, if the config changes nothing of it: what has failed there has
// failed here.
func (v *survey) movedIn(s Surveyed) (moved, own bool) {
	if last := max(v.ours, v.others); !s.Ready && !s.Changes {
		moved = slices.ContainsFunc(s.marks, func(m Mark) bool { return m.Began == last })
	}
	for _, m := range s.marks {
		if m.Config == v.config && m.Began > v.others && !m.outdated {
			moved, own = true, own || m.Own
		}
	}
	return moved, own
}
