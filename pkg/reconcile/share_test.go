package reconcile

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/pipeline"
	"github.com/corollary-dev/corollary/pkg/render"
)

func TestPlaces(t *testing.T) {
	s := &Reconciler{PlaceWait: time.Minute, Places: make(chan struct{}, 1)}
	first, second := &look{Reconciler: s, record: &record{}}, &look{Reconciler: s, record: &record{}}
	for range 2 {
		if err := first.larger(); err != nil {
			t.Fatalf("a free place is not given, or twice: %v", err)
		}
	}
	if err := second.larger(); !errors.Is(err, errNoPlace) || !second.crowded || !second.record.large {
		t.Errorf("with no place left: %v, %+v", err, second)
	}
	first.leave()
	first.leave()
	if second.larger() != nil || !second.placed {
		t.Error("the place that was given back is not given again")
	}
	begun, done := &look{Reconciler: s, record: &record{}, begun: true}, make(chan error)
	go func() { done <- begun.larger() }()
	second.leave()
	if err := <-done; err != nil {
		t.Errorf("a look that has begun does not wait for its place: %v", err)
	}
	if len(s.Places) != 1 {
		t.Errorf("%d places are taken, one look has one", len(s.Places))
	}
	free := &look{Reconciler: &Reconciler{}, record: &record{}}
	for range 2 {
		if err := free.larger(); err != nil {
			t.Errorf("a survey has as many places as it needs: %v", err)
		}
	}
}

func TestTooSlowIsTriedAgain(t *testing.T) {
	slow := &pipeline.Wish{Downstreams: []pipeline.DownstreamWish{{}, {Err: fmt.Errorf("rendering a: %w", &render.Error{Limit: render.ErrTime})}}}
	if !tookTooLong(slow) || tookTooLong(&pipeline.Wish{Downstreams: []pipeline.DownstreamWish{{Err: &render.Error{Limit: render.ErrLimit}}}}) {
		t.Error("only a lack of time passes by itself")
	}
	now := time.Now()
	r := &record{slowUntil: now, version: "1", digest: drift.Sum{1}}
	if r.forgetSlow(now.Add(-time.Second)); r.version != "1" {
		t.Error("it is rendered again at once")
	}
	if r.forgetSlow(now); r.version != "" || r.digest != (drift.Sum{}) || !r.slowUntil.IsZero() {
		t.Error("it is not rendered again")
	}
}
