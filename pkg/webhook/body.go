package webhook

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"time"

	"golang.org/x/sync/semaphore"
)

const (
	// sharedReviews bounds the bytes of the reviews that are read side by side.
	sharedReviews = maxReview / 2
	// firstStep is how many bytes are reserved for a client that has sent nothing: no more than its connection takes
	// anyway. Each later step is as large as what has come, up to bodyStep.
	firstStep = 16 << 10
	bodyStep  = 1 << 20
	// maxStepTime is the time limit of a client for each step: one that sends nothing must not hold what others need.
	maxStepTime = 5 * time.Second
)

// budget bounds the memory for bodies. What a client announces reserves nothing; only what it has sent does. A review
// for which nothing is left goes on alone: of several that wait for one another, one always has what it needs.
type budget struct{ shared, alone *semaphore.Weighted }

var bodies = budget{semaphore.NewWeighted(sharedReviews), semaphore.NewWeighted(1)}

// reservation is what one review holds of a budget.
type reservation struct {
	*budget
	bytes   int64
	isAlone bool
}

func (r *reservation) grow(ctx context.Context, step int64) error {
	if r.isAlone {
		return nil
	}
	if r.shared.TryAcquire(step) {
		r.bytes += step
		return nil
	}
	if err := r.alone.Acquire(ctx, 1); err != nil {
		return err
	}
	r.isAlone = true
	return nil
}

func (r *reservation) release() {
	r.shared.Release(r.bytes)
	if r.isAlone {
		r.alone.Release(1)
	}
}

var (
	errBusy    = errors.New("too many reviews at a time")
	errTooLong = fmt.Errorf("the review has more than %d MiB", maxReview>>20)
)

// codeOf is the HTTP status for an error of read; 0 for none, and for what the connection's end says already.
func codeOf(err error) int {
	switch {
	case errors.Is(err, errBusy):
		return http.StatusServiceUnavailable
	case errors.Is(err, errTooLong):
		return http.StatusRequestEntityTooLarge
	case errors.Is(err, os.ErrDeadlineExceeded):
		return http.StatusRequestTimeout
	}
	return 0
}

// read reads a body that the client says has length bytes; -1: it does not say. A client may take maxStep for each
// step, and until the deadline of ctx for all of them. The error is errBusy, errTooLong, or the connection's.
func (r *reservation) read(
	ctx context.Context, w http.ResponseWriter, body io.Reader, length int64, maxStep time.Duration,
) ([]byte, error) {
	connection := http.NewResponseController(w)
	var text []byte
	for len(text) <= maxReview {
		step := min(max(len(text), firstStep), bodyStep)
		if left := length - int64(len(text)); left >= 0 && left < int64(step) {
			step = int(left) + 1 // one more byte finds the end
		}
		if err := r.grow(ctx, int64(step)); err != nil {
			return nil, errBusy
		}
		_ = connection.SetReadDeadline(earliest(ctx, time.Now().Add(maxStep))) // only tests have no deadlines
		text = slices.Grow(text, step)
		n, err := io.ReadFull(body, text[len(text):len(text)+step])
		switch text = text[:len(text)+n]; {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			// of a body that ends too early, what is there is no JSON
			_ = connection.SetReadDeadline(time.Time{})
			return text, nil
		case err != nil:
			return nil, err
		}
	}
	return nil, errTooLong
}

// earliest is a time, or the deadline of ctx if that is before.
func earliest(ctx context.Context, at time.Time) time.Time {
	if deadline, ok := ctx.Deadline(); ok && deadline.Before(at) {
		return deadline
	}
	return at
}
