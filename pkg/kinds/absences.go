package kinds

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ErrServedAgain says that a kind was not served, and that nothing is known of its objects yet.
var ErrServedAgain = errors.New("the kind is served again, and its objects are about to be listed")

// Absences is a Cluster that also remembers for a moment which kinds that are not watched are absent: many upstreams may be
// deleted at once. Safe for concurrent use.
type Absences struct {
	*Cluster
	keepFor time.Duration

	mu    sync.Mutex
	asked map[schema.GroupVersionKind]absence
}

type absence struct {
	err   error
	until time.Time
}

// NewAbsences asks a cluster, and keeps each answer for a time.
func NewAbsences(c *Cluster, keepFor time.Duration) *Absences {
	return &Absences{Cluster: c, keepFor: keepFor, asked: map[schema.GroupVersionKind]absence{}}
}

// absenceWait bounds how long the answer is waited for: one that does not come leaves everything as it is.
const absenceWait = 5 * time.Second

// Absent returns nil if no object of a kind that is not watched can exist: the API server says now, too, that it does not
// serve the kind and has no definition of it. Otherwise the error says why that is not certain.
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
	case IsNotDefined(err):
		err = nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked[gvk] = absence{err, time.Now().Add(a.keepFor)}
	return err
}

func (a *Absences) known(gvk schema.GroupVersionKind) (known absence, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	known, ok = a.asked[gvk]
	return known, ok && time.Now().Before(known.until)
}
