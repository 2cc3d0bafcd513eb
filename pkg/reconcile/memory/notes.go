package memory

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/canonical"
	"github.com/corollary-dev/corollary/pkg/operator/report"
)

// Notes are the memory that few upstreams need. Only the worker that holds the key uses them.
type Notes struct {
	// RenderAgainAt is when a desired state that took too long is rendered again, and Slow delays that and a status that
	// did.
	RenderAgainAt time.Time
	Slow          Retry
	// requested is the last value of the annotation that requests a reconcile.
	requested string
	// siblings are by the place of a live object that others read.
	siblings map[Place]siblingSeen
	// UpstreamFailure is the reason of a failed request for the upstream itself that is retried; empty for none.
	UpstreamFailure string
	Refused         Refused
	// HeldByObserve are the last logged actions that mode Observe does not carry out.
	HeldByObserve []string
	// Waiting delays checks of what is being deleted, about which no event may come.
	Waiting Retry
	// Left are the objects that were at no target the last time.
	Left []Witness
	// marks are by the uid of an object whose owner annotation names another upstream.
	marks map[types.UID]*Mark
	// Unconfirmed are the places at which objects were created that the cache has not shown yet, if only the finalizer
	// cleans them up.
	Unconfirmed []Place
	// NotMade are the targets of an upstream that is being deleted at which no object of it was found.
	NotMade map[Place]bool
	// fates are what became of objects, while the cache may not show it.
	fates fates
}

// Refused are the values of status.fields that the API server refused by the definition of that number.
type Refused struct {
	Fields     report.RefusedFields
	Definition int
}

// siblingSeen is what another downstream could read of a live object the last time.
type siblingSeen struct {
	shown   canonical.Sum
	written time.Time     // our last write to it
	cause   canonical.Sum // the last of shown that is not our own doing
}

// isEmpty reports whether nothing is left to be remembered.
func (n *Notes) isEmpty(now time.Time) bool {
	n.fates.expire(now)
	return n.RenderAgainAt.IsZero() && !n.Slow.HasFailed() && n.requested == "" &&
		n.UpstreamFailure == "" && !n.Waiting.HasFailed() &&
		!report.Any(n.Refused.Fields) &&
		len(n.siblings)+len(n.Left)+len(n.marks)+len(n.HeldByObserve)+len(n.Unconfirmed)+len(n.NotMade)+len(n.fates) == 0
}

// ExpectCreated records that an object is about to be created at a place.
func (n *Notes) ExpectCreated(at Place) {
	if !slices.Contains(n.Unconfirmed, at) {
		n.Unconfirmed = append(n.Unconfirmed, at)
	}
}

// NoteNotMade records that no object of the upstream is at a target.
func (n *Notes) NoteNotMade(at Place) {
	if n.NotMade == nil {
		n.NotMade = map[Place]bool{}
	}
	n.NotMade[at] = true
}
