package release

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/corollary-dev/corollary/pkg/config/load"
)

// CheckDeletions returns an error if a release would take a deletion.before, or what deletion.wait keeps, from an
// upstream that is being deleted. Until then, the operator is needed. It writes nothing; what else fails, the release
// reports.
func (r *Releaser) CheckDeletions(ctx context.Context, files []*load.File, namespace string) error {
	dry := &Releaser{Client: r.Client, Kinds: r.Kinds, Out: io.Discard, DryRun: true,
		Here: true, SkipsBefore: r.SkipsBefore}
	for _, f := range files {
		if Awaits(f) == "" {
			continue
		}
		if err := dry.Operator(ctx, f, namespace); errors.Is(err, ErrNeedsOperator) {
			return fmt.Errorf("nothing is released: operator %s: %w", f.Metadata.Name, err)
		}
	}
	return nil
}
