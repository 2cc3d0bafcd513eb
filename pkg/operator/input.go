package operator

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/canonical"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/status"
)

// BeforeName is what status, metrics and events call the object of deletion.before. The dot keeps it apart from every
// downstream's name.
const BeforeName = "deletion.before"

// BeforeIndex is in Outcome.Downstream for the object of deletion.before.
const BeforeIndex = -1

// BeforeFacts are what is known of the object of deletion.before while its upstream is being deleted.
type BeforeFacts struct {
	// Record is what the upstream's status has of it; nil if it has nothing.
	Record *status.Recorded
	// Made is the uid of the object that this process made; empty if it made none.
	Made types.UID
	// Desired is what is to be made; ignored once something was made.
	Desired DesiredObject
	// Live is the object that was made, or else what exists where it was recorded to be made or shall be; also of an
	// earlier deletion.before.
	Live *drift.Live
	// Progress evaluates doneWhen and failedWhen for the object that was made.
	Progress func(live *drift.Live) Progress
	// Unread is why the object of an earlier deletion.before may not be read; empty if it may.
	Unread string
	// CannotCreate is true if the last create was refused because the namespace is being deleted.
	CannotCreate bool
}

// Progress is what deletion.before says of its object.
type Progress struct {
	Done, Failed bool
	// TookTooLong is true if an expression got no time to end.
	TookTooLong bool
	// Err is why doneWhen could not be evaluated, without values of Secrets.
	Err error
}

// Cascade is what whoever deletes an upstream wants done about its downstreams. It goes before what the config says.
type Cascade string

// What a deletion may ask for, as `kubectl delete --cascade` does.
const (
	// CascadeConfig leaves it to the config: --cascade=background asks for nothing that the API server would keep.
	CascadeConfig Cascade = ""
	// CascadeForeground: the upstream goes after its downstreams.
	CascadeForeground Cascade = "foreground"
	// CascadeOrphan: the downstreams stay.
	CascadeOrphan Cascade = "orphan"
)

// CascadeOf reads what a deletion asks for from the upstream's finalizers, where the API server puts it for the garbage
// collector. That takes them off when it has no more to do, which may be before we have seen them.
func CascadeOf(finalizers []string) Cascade {
	switch {
	case slices.Contains(finalizers, metav1.FinalizerOrphanDependents):
		return CascadeOrphan
	case slices.Contains(finalizers, metav1.FinalizerDeleteDependents):
		return CascadeForeground
	}
	return CascadeConfig
}

// State is what the status records of a downstream before its turn comes, since the garbage collector removes the
// finalizer that says so.
func (c Cascade) State() State {
	switch c {
	case CascadeOrphan:
		return StateRelease
	case CascadeForeground:
		return StateDeleteFirst
	}
	return ""
}

// Input is everything that a decision depends on.
type Input struct {
	Upstream *unstructured.Unstructured
	// Desired is what the upstream asks for; ignored where the upstream is deleted or no longer selected.
	Desired *Desired
	// Selected is false if the upstream exists but the config's selectors no longer match it.
	Selected bool
	// SelectionErr is why it is not known whether watch.matchConditions exclude an upstream that is not selected; nil if
	// it is.
	SelectionErr error
	// Health evaluates the rules about readiness for the live object of Desired.Objects[k]; nil: the order of the
	// downstreams does not matter.
	Health func(k int, live *drift.Live) status.Fact
	// Facts are about the objects of Desired, in order.
	Facts []Facts
	// Leftovers are objects that have this upstream's mark and are at no target, by downstream index.
	Leftovers []Owned
	// Unread are objects that may exist, at a place, and could not be read; without a name, any object of the downstream.
	Unread []Owned
	// Forgotten are what the config has forgotten, where one of Leftovers or of them contains others, or the upstream is
	// being deleted.
	Forgotten []ForgottenObject
	// Unrecorded are objects that say that they are of a downstream that the config no longer has, and that the status
	// does not record.
	Unrecorded []status.Recorded
	// Others are what would be deleted with Leftovers, and belongs to other upstreams.
	Others []OtherObject
	// HasFinalizer is true if the upstream has the config's finalizer, current or previous.
	HasFinalizer bool
	// HasPreviousFinalizer reports whether it has the finalizer in conventions.previous.
	HasPreviousFinalizer bool
	// FinalizerSpaced is how long the next change of the finalizer must wait, since those before did not settle; zero: not
	// at all.
	FinalizerSpaced time.Duration
	// Before is about deletion.before; only where the config has one and the upstream is being deleted.
	Before BeforeFacts
	// Cascade is what the deletion of the upstream asks for.
	Cascade Cascade
	// ReferencesLost: the garbage collector has removed our owner references while no process watched, as it does with
	// --cascade=orphan.
	ReferencesLost bool
	// Now is what the timeout of deletion.before is held to.
	Now time.Time
}

// Owned is a live object and the downstream that it belongs to.
type Owned struct {
	Downstream int
	Live       *drift.Live
	// Certain is false if several downstreams are of its kind and nothing records which one it belongs to.
	Certain bool
	// Recorded is true if the status or this process knows it as an object of the downstream.
	Recorded bool
	// Spaced is how long its deletion or release must wait: someone keeps making it again.
	Spaced time.Duration
	// UnwantedSince numbers the change of the desired state since which it is at no target; 0 if that is not known. See
	// Facts.WantedSince.
	UnwantedSince int
}

// Facts are what is known of one downstream's target.
type Facts struct {
	// Live is what exists at the target; nil if nothing is known to.
	Live *drift.Live
	// Trusted is true if this process made Live or found it to be ours before, or where its uid is recorded in a status
	// that Settings.TrustsStatus. The API server's own record of who made it is in Live: see marks.Owns.
	Trusted bool
	// RecordedHash is the hash that the upstream's status records of Live; empty if none is.
	RecordedHash string
	// RecordedAt is where the upstream's status records that the object is or was, RecordedUID its uid; empty for none.
	RecordedAt  Ref
	RecordedUID types.UID
	// HasKeptValues is true if the generated values of an object that was deleted here are remembered for the next one.
	HasKeptValues bool
	// Finished is true if the status records that the object at RecordedAt had done its work, Failed where it had done it
	// badly.
	Finished, Failed bool
	// Baseline is the projection's digest that our own last apply of Live returned; nil if none is remembered or recorded.
	Baseline *canonical.Sum
	// Verdict is what probes answered about Live and this desired state.
	Verdict Verdict
	// AppliedHash is the hash of what this process last applied to Live; empty if it has not.
	AppliedHash string
	// Unverified is true if Live may still have values from before its last update that nobody owns: it is not known
	// whether it was compared with a new object since.
	Unverified bool
	// Spaced is how long the next write must wait, since those before did not settle; zero: not at all. Feedback is why
	// the desired follows from what was written; empty if it does not.
	Spaced   time.Duration
	Feedback string
	// WantedSince numbers the change of the desired state since which one of several objects is wanted: an object that was
	// wanted before another one ceased to be has not replaced it.
	WantedSince int
}

// Verdict is what the API server answered to probes, each nil or empty where it was not asked.
type Verdict struct {
	// Immutable: an apply of this desired state was refused, and a dry-run create of it under another name was accepted.
	Immutable bool
	// SameByDryRun: a dry-run apply of this desired state would change nothing of the live object.
	SameByDryRun *bool
	// Foreign describes an object at the target that is not ours and that the watch cannot see.
	Foreign string
	// Sibling is the downstream that has the object at the target, which it may leave; empty for none.
	Sibling string
	// Contenders describes who undoes our repairs, and where.
	Contenders string
	// Stale describes in which fields the object stays different from a new one of the same document.
	Stale string
	// Differences describes what the action would change, where mode is Observe.
	Differences string
}

// LastHash is the hash of the document that was applied last to a live object: of what this process applied or the
// upstream's status records; where there is neither, as for an object that no watch shows, what the object has, which
// anybody may have changed.
func (f *Facts) LastHash(of *drift.Live) string {
	if f.Live == nil || f.Live.UID != of.UID {
		return of.Hash
	}
	return cmp.Or(f.AppliedHash, f.RecordedHash, of.Hash)
}

// ForgottenObject is one that Forgotten lists, and that exists or may exist.
type ForgottenObject struct {
	status.Recorded
	Resource schema.GroupResource
	// Unread is true if it may exist, and could not be read.
	Unread bool
	// Referenced: it has an owner reference to the upstream, so the garbage collector deletes it.
	Referenced bool
	// Deleting: it is being deleted already, so it may have been the turn of what comes before it next.
	Deleting bool
	// Kept is why it is not deleted nevertheless; only in Decision.
	Kept string
}

// OtherObject is an object of a downstream that belongs to another upstream.
type OtherObject struct {
	Downstream int
	At, Of     Ref
}
