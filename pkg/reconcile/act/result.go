package act

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/canonical"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/reconcile/memory"
)

// Result is what came of the action of one object: what the API server answered, and what follows from that for memory
// and events.
type Result struct {
	// Outcome is what was carried out: an apply, if an object to create exists after all.
	operator.Outcome
	// Err is why it, or the rest of it, was not carried out.
	Err error
	// Did is the reason of the event about it; empty if there is nothing to report.
	Did string
	// Answer is the object as the API server returned it last; nil if it did not, or it is gone. Written is the hash with
	// which it was written; empty if it was read, or is no longer ours. Stored is all of it as it was, or would be,
	// written; nil if it was not.
	Answer  *drift.Live
	Written string
	Stored  *unstructured.Unstructured
	// Applied is about the document of an apply; nil if none was sent, or nothing is known of the object.
	Applied *Applied
	// Gone are objects that do not exist.
	Gone []types.UID
	// MayExist is whether an object may be at a place at which one was to be created, so that only the finalizer cleans it
	// up; nil: not known.
	MayExist *bool
	// Changed are the fields that were changed, as far as they are known, and Stay those that are no longer in the
	// template and stay.
	Changed []drift.Difference
	Stay    []drift.CoOwnedField
	// ValuesLost is true if the LostValues of the outcome are lost.
	ValuesLost bool
	// Hidden: the API server returned what was written with labels by which no watch shows it.
	Hidden bool
	// ChangedBy says which fields another writer changed; nil: that was not found out.
	ChangedBy *string
	// Immutable is whether the update needs the object to be recreated, and Same whether an apply would change nothing;
	// nil: not asked.
	Immutable, Same *bool
	// Generated are the generated values of an object that is being deleted, for the next one.
	Generated map[string]string
	// Verified is what is known of an updated object: Verify has still to compare it if that IsPending.
	Verified *memory.Verification
}

// Applied is what the API server made of a document.
type Applied struct {
	// Baseline is the projection if it is not what was sent, and Rewritten the fields with other values.
	Baseline  *canonical.Sum
	Rewritten string

	document map[string]any
}
