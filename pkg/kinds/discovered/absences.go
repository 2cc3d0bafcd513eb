package discovered

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/pkg/kinds"
)

// ErrServedAgain means that a kind was not served before, and that its objects are not listed yet.
var ErrServedAgain = errors.New("the kind is served again, and its objects are about to be listed")

// Absences is a Cluster that caches for a moment which unwatched kinds are absent: many upstreams may be deleted at
// once. It is safe for concurrent use.
type Absences struct {
	*Cluster
	keepFor time.Duration

	mu     sync.Mutex
	cached map[schema.GroupVersionKind]absence
}

type absence struct {
	err   error
	until time.Time
}

// NewAbsences returns an Absences that caches each answer for keepFor.
func NewAbsences(c *Cluster, keepFor time.Duration) *Absences {
	return &Absences{Cluster: c, keepFor: keepFor, cached: map[schema.GroupVersionKind]absence{}}
}

// absenceWait limits the wait for the answer; without one nothing changes.
const absenceWait = 5 * time.Second

// Absent returns nil if no object of an unwatched kind can exist: the API server does not serve the kind and has no
// definition of it. Otherwise the error says why that is uncertain.
func (a *Absences) Absent(ctx context.Context, gvk schema.GroupVersionKind) error {
	if known, ok := a.known(gvk); ok {
		return known.err
	}
	ctx, cancel := context.WithTimeout(ctx, absenceWait)
	defer cancel()
	_, err := a.Served(ctx, gvk)
	switch {
	case err == nil:
		err = fmt.Errorf("%s: %w", gvk.Kind, ErrServedAgain)
	case kinds.IsNotDefined(err):
		err = nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.cached[gvk] = absence{err, time.Now().Add(a.keepFor)}
	return err
}

func (a *Absences) known(gvk schema.GroupVersionKind) (known absence, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	known, ok = a.cached[gvk]
	return known, ok && time.Now().Before(known.until)
}
