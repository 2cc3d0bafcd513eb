package guard

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/corollary-dev/corollary/pkg/canonical"
	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/operator"
)

// Exceeded says what guard does not allow without confirmation, such as "7 of 9 existing downstreams would be deleted,
// and guard.maxDeleted allows 5"; it is empty if guard allows it.
func Exceeded(op *config.Operator, c Count) string {
	changed := tooManyChanged(op, c)
	if c.Failing == 0 {
		return changed
	}
	failing := fmt.Sprintf("%d upstreams that the active config renders would be RenderFailed", c.Failing)
	if c.Failing == 1 {
		failing = "1 upstream that the active config renders would be RenderFailed"
	}
	if changed != "" {
		failing += ", and " + changed
	}
	return failing
}

func tooManyChanged(op *config.Operator, c Count) string {
	g := op.Guard
	if limit := limitOf(g, g.MaxChanged, c.Existing); g.MaxChanged != "" && c.Changed > limit {
		return fmt.Sprintf("%d of %d existing downstreams would be changed or deleted, and guard.maxChanged allows %d",
			c.Changed, c.Existing, limit)
	}
	limit, key := limitOf(g, g.MaxDeleted, c.Existing), "guard.maxDeleted"
	if op.Source != nil {
		d := op.Source.Deletes
		limit, key = max(c.Existing**d.MaxPercent/100, *d.Minimum), "source.deletes"
	}
	if c.Deleted > limit {
		return fmt.Sprintf("%d of %d existing downstreams would be deleted, and %s allows %d",
			c.Deleted, c.Existing, key, limit)
	}
	return ""
}

// limitOf is how many objects a percentage allows.
func limitOf(g *config.Guard, share string, standing int) int {
	percent, _ := strconv.Atoi(strings.TrimSuffix(share, "%")) // held to its form when it was loaded
	limit := standing * percent / 100
	if g.Minimum != nil {
		limit = max(limit, *g.Minimum)
	}
	return limit
}

// NeverHolds reports whether guard allows any change of so many downstreams.
func NeverHolds(op *config.Operator, standing int) bool {
	return Exceeded(op, Count{Existing: standing, Changed: standing, Deleted: standing}) == ""
}

// Survey adds up what is counted of each upstream without an operator.
type Survey struct {
	Count
	changes map[operator.Ref]canonical.Sum
}

// Take adds what is counted of one upstream.
func (s *Survey) Take(ref operator.Ref, c Count, digest canonical.Sum) {
	s.Add(c)
	if c.Changed == 0 {
		return
	}
	if s.changes == nil {
		s.changes = map[operator.Ref]canonical.Sum{}
	}
	s.changes[ref] = digest
}

var digestForm = regexp.MustCompile("^[0-9a-f]{32}$")

// IsDigest reports whether a text can be a digest to confirm.
func IsDigest(text string) bool { return digestForm.MatchString(text) }

// Digest is the digest that a running operator would ask to confirm.
func (s *Survey) Digest() string { return changeDigest(s.changes) }
