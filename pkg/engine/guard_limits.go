package engine

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/pipeline"
	"github.com/corollary-dev/corollary/pkg/reconcile"
)

// GuardExceeded tells what guard does not allow without confirmation, in words such as "7 of 9 standing downstreams would be
// deleted, and guard.maxDeleted allows 5"; it is empty where guard allows it.
func GuardExceeded(g *config.Guard, c reconcile.GuardCount) string {
	if limit := guardLimit(g, g.MaxChanged, c.Standing); g.MaxChanged != "" && c.Changed > limit {
		return fmt.Sprintf("%d of %d existing downstreams would be changed or deleted, and guard.maxChanged allows %d", c.Changed, c.Standing, limit)
	}
	if limit := guardLimit(g, g.MaxDeleted, c.Standing); c.Deleted > limit {
		return fmt.Sprintf("%d of %d existing downstreams would be deleted, and guard.maxDeleted allows %d", c.Deleted, c.Standing, limit)
	}
	return ""
}

// guardLimit is how many objects a share allows.
func guardLimit(g *config.Guard, share string, standing int) int {
	percent, _ := strconv.Atoi(strings.TrimSuffix(share, "%")) // held to its form when it was loaded
	limit := standing * percent / 100
	if g.Minimum != nil {
		limit = max(limit, *g.Minimum)
	}
	return limit
}

// guardNeverHolds tells whether guard allows whatever may happen to so many downstreams.
func guardNeverHolds(g *config.Guard, standing int) bool {
	return GuardExceeded(g, reconcile.GuardCount{Standing: standing, Changed: standing, Deleted: standing}) == ""
}

// GuardSum adds up what a survey's findings say of guard.
type GuardSum struct {
	reconcile.GuardCount
	changes map[pipeline.Ref]drift.Sum
}

// Take takes in one finding.
func (s *GuardSum) Take(f *reconcile.Finding) {
	s.Add(f.GuardCount)
	if f.GuardCount.Changed == 0 {
		return
	}
	if s.changes == nil {
		s.changes = map[pipeline.Ref]drift.Sum{}
	}
	s.changes[f.Ref] = f.GuardDigest
}

var guardDigest = regexp.MustCompile("^[0-9a-f]{32}$")

// IsGuardDigest tells whether a text can be what a running operator would ask to have confirmed.
func IsGuardDigest(text string) bool { return guardDigest.MatchString(text) }

// Digest is what a running operator would ask to have confirmed.
func (s *GuardSum) Digest() string { return changeDigest(s.changes) }
