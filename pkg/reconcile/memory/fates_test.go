package memory

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/operator"
)

// What a target shows after its object was deleted, released or not found, by what the cache shows by then.
func TestWhatBecameOfAnObject(t *testing.T) {
	at, now := operator.Ref{Namespace: "ns", Name: "a"}, time.Now()
	live := func(uid types.UID, version string, deleting bool) *drift.Live {
		return &drift.Live{Identity: drift.Identity{UID: uid, Namespace: at.Namespace, Name: at.Name, ResourceVersion: version}, Deleting: deleting}
	}
	older, terminating, another := live("u", "7", false), live("u", "9", true), live("v", "12", false)
	released, changed := live("u", "9", false), live("u", "11", false)
	for _, row := range []struct {
		reason string
		note   func(*Upstream)
		cached *drift.Live
		after  time.Duration
		want   *drift.Live
	}{
		{"a finalizer holds it, and the cache lags", func(r *Upstream) { r.NoteDeleting(0, terminating, now) }, older, 0, terminating},
		{"the cache may never have shown it", func(r *Upstream) { r.NoteDeleting(0, terminating, now) }, nil, 0, terminating},
		{"time alone ends nothing", func(r *Upstream) { r.NoteDeleting(0, terminating, now) }, nil, time.Hour, terminating},
		{"the watch shows it deleted", func(r *Upstream) { r.NoteDeleting(0, terminating, now); r.NoteUnwatched(0, "u") }, nil, 0, nil},
		{"another object has the name", func(r *Upstream) { r.NoteDeleting(0, terminating, now) }, another, 0, another},
		{"the answer did not contain it, so that its version is that of the cache", func(r *Upstream) { r.NoteDeleting(0, live("u", "7", true), now) }, older, 0, live("u", "7", true)},
		{"it is gone, whatever the cache shows", func(r *Upstream) { r.NoteGone("u", now) }, older, 0, nil},
		{"a cache that lags may show it terminating", func(r *Upstream) { r.NoteGone("u", now) }, terminating, 0, nil},
		{"it was released and exists, as the response shows it", func(r *Upstream) { r.NoteReleased(0, released, now) }, older, 0, released},
		{"the cache shows that by now", func(r *Upstream) { r.NoteReleased(0, released, now); r.NoteUnwatched(0, "u") }, released, 0, released},
		{"somebody has changed it since", func(r *Upstream) { r.NoteReleased(0, released, now) }, changed, 0, changed},
		{"read, it was not ours", func(r *Upstream) { r.NoteAbsent("u", released, now) }, older, 0, nil},
		{"read, another one was in its place", func(r *Upstream) { r.NoteAbsent("u", another, now) }, older, 0, nil},
	} {
		r := &Upstream{shared: shared{list: []*Object{{}}}}
		row.note(r)
		got, _ := r.Latest(0, at, func() *drift.Live { return row.cached }, now.Add(row.after))
		if (got == nil) != (row.want == nil) || got != nil && (got.UID != row.want.UID || got.Deleting != row.want.Deleting || got.ResourceVersion != row.want.ResourceVersion) {
			t.Errorf("%s: %+v, want %+v", row.reason, got, row.want)
		}
	}
}
