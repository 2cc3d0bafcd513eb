package guard

import (
	"github.com/corollary-dev/corollary/pkg/canonical"
)

// Count is how many downstreams exist, how many of them would be changed or deleted, and how many of these deleted.
type Count struct {
	Existing, Changed, Deleted int
	// Failing counts the upstreams that the active config renders and a changed one would not.
	Failing int
}

// Any reports whether there is anything that may need a confirmation.
func (c Count) Any() bool { return c.Changed > 0 || c.Failing > 0 }

// Add adds another count.
func (c *Count) Add(other Count) {
	c.Existing += other.Existing
	c.Changed += other.Changed
	c.Deleted += other.Deleted
	c.Failing += other.Failing
}

// Counted is what is counted for one upstream: its existing downstreams, how many would be changed or deleted, the
// first of these in words, and the digest of the changes.
type Counted struct {
	Count
	First  string
	Digest canonical.Sum
}
