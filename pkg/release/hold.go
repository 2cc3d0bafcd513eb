package release

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/leadership"
)

// hold is the Lease of `corollary run`, in the hands of a process that has one thing to do.
type hold struct {
	*leadership.Election
	lease  string // NAMESPACE/NAME
	holder string // who was waited for last; not to be read while an election runs
}

// newHold prepares to take a Lease. It writes to w whom it waits for. Its timings are the defaults of `corollary run`;
// how long another's hold is good, that one says itself.
func newHold(cfg *rest.Config, namespace, name string, w io.Writer) (*hold, error) {
	h := &hold{lease: namespace + "/" + name}
	var err error
	h.Election, err = leadership.New(cfg, leadership.Options{
		Namespace: namespace, Name: name, Timings: leadership.DefaultTimings(), Role: "release",
		Once: true, Log: logr.Discard(),
		Waiting: func(holder string, lasts time.Duration) {
			h.holder = holder
			fmt.Fprintf(w, "waiting until %s releases Lease %s, or has not renewed it for %.0fs\n",
				holder, h.lease, lasts.Seconds())
		},
	})
	if err != nil {
		return nil, fmt.Errorf("preparing to take Lease %s: %w", h.lease, err)
	}
	return h, nil
}

// during waits for the Lease, has work done while it holds it, and lets go of it when work has ended: not before, be it
// that ctx is done, which ends work, or that the Lease is lost, which ends it too.
func (h *hold) during(ctx context.Context, work func(context.Context) error) error {
	begun := false
	err := h.Run(ctx, func(ctx context.Context) error {
		if begun = h.Wait(ctx); !begun {
			return ctx.Err()
		}
		return work(ctx)
	})
	var (
		denied *leadership.DeniedError
		lost   *leadership.LostError
	)
	switch {
	case errors.As(err, &denied):
		return fmt.Errorf("taking Lease %s: %s", h.lease, apply.Classify(denied.Err).Message)
	case errors.As(err, &lost):
		return fmt.Errorf("%w. The rest is unchanged: run release again to continue", err)
	case !begun && h.holder != "":
		return fmt.Errorf("waiting for Lease %s, which %q holds: %w", h.lease, h.holder, err)
	case !begun:
		return fmt.Errorf("waiting for Lease %s: %w", h.lease, err)
	}
	return err
}
