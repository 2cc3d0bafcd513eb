package observe

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/canonical"
	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/compile"
	"github.com/corollary-dev/corollary/pkg/operator/decide"
	"github.com/corollary-dev/corollary/pkg/operator/desired"
	"github.com/corollary-dev/corollary/pkg/operator/marks"
	"github.com/corollary-dev/corollary/pkg/reconcile/departures"
	"github.com/corollary-dev/corollary/pkg/reconcile/memory"
	"github.com/corollary-dev/corollary/pkg/status"
)

// State is what is known of one upstream, during one reconciliation.
type State struct {
	Sources
	Ref      operator.Ref
	Upstream *unstructured.Unstructured
	Memory   *memory.Upstream
	Selected bool
	// Began is when the reconciliation began, by which all is decided.
	Began time.Time
	// TrustedUntil is until when a response counts for an object that the cache does not show; zero for none.
	TrustedUntil time.Time
	// InputsDigest is the digest of what is read of the inputs: those in the caches when the desired state was rendered,
	// of the upstream at version inputsOf. unpacked is what templates see, at its first use.
	InputsDigest canonical.Sum
	inputs       []foundInput
	inputsOf     string
	unpacked     *desired.Inputs
	// digestWithoutStatus is digest(nil) of the upstream digestOfUpstream, made once for each.
	digestWithoutStatus canonical.Sum
	digestOfUpstream    *unstructured.Unstructured
}

// Sources are where that is known from, and how it is read.
type Sources struct {
	Pipeline *compile.Pipeline
	Cache    Cache
	Removals *memory.Removals
	Cascades *departures.Cascades
	Readers  *Readers
	// AcquireSlot is called before an input is unpacked that takes much time or memory.
	AcquireSlot func() error
}

// IsGoneRow reports whether the upstream is a row that the query does not return.
func (st *State) IsGoneRow() bool { return !st.Selected && st.Pipeline.HasRows() }

// IsTrusted is Facts.Trusted of object k of the desired state.
func (st *State) IsTrusted(k int, uid types.UID, recorded []status.Recorded) bool {
	return st.Memory.Object(k).UID == uid || IsRecorded(st.Pipeline.Settings, recorded, uid)
}

// LatestAt is the object k of the desired state at a place, as the cache or a response shows it, and until when that
// response counts.
func (st *State) LatestAt(k int, at operator.Ref) (*drift.Live, time.Time) {
	i := st.Memory.Desired().Objects[k].Downstream
	return st.Memory.Latest(k, at, func() *drift.Live { return st.Cache.Live(i, at) }, st.Began)
}

// IsRecorded reports whether the status records the uid as that of an object that we created, and can be trusted.
// StateDrifted of one that is only created says that it was not known to be ours.
func IsRecorded(s *operator.Settings, recorded []status.Recorded, uid types.UID) bool {
	return s.TrustsStatus() && slices.ContainsFunc(recorded, func(one status.Recorded) bool {
		return one.UID == uid && (one.State != string(operator.StateDrifted) ||
			!slices.ContainsFunc(s.Downstreams, func(d *operator.Downstream) bool {
				return d.Name == one.Name && d.Config.UpdatePolicy == config.UpdateCreateOnly
			}))
	})
}

// BaselineOf is the projection that our last apply of live returned: as this process remembers it, else as the
// upstream's status records it; nil if it is what was sent, or unknown.
func (st *State) BaselineOf(k int, live *drift.Live, rec *status.Recorded) *canonical.Sum {
	if sum, known := st.Memory.Baseline(st.Memory.Desired().Objects[k].Downstream, live.UID); known {
		return sum
	}
	// A status that is written like any other field of the upstream is not believed.
	if rec == nil || !st.Pipeline.TrustsStatus() || rec.Hash == "" || rec.UID != live.UID || rec.Hash != live.Hash {
		return nil
	}
	if sum, ok := canonical.ParseSum(rec.Baseline); ok {
		return &sum
	}
	return nil
}

// TrustUntil sets until when a response counts for an object that the cache does not show: if the cache never shows it,
// only another reconciliation finds that out.
func (st *State) TrustUntil(until time.Time) {
	if st.TrustedUntil.IsZero() || until.Before(st.TrustedUntil) {
		st.TrustedUntil = until
	}
}

// Locate returns the place of an object: its target or, if that is unknown, the place that the status records.
func (st *State) Locate(k int, rec *status.Recorded) (at operator.Ref, hash string, ok bool) {
	w := st.Memory.Desired()
	if o := &w.Objects[k]; len(w.Invalid) == 0 && o.Err == nil {
		return o.Target, o.Hash, o.Wanted
	}
	if rec == nil {
		return operator.Ref{}, "", false
	}
	return operator.Ref{Namespace: rec.Namespace, Name: rec.ObjectName}, "", true
}

// RecordedAs returns what the status records of object k of the desired state; nil for nothing.
func (st *State) RecordedAs(list []status.Recorded, k int) *status.Recorded {
	return st.Pipeline.RecordedOf(list, &st.Memory.Desired().Objects[k])
}

// DownstreamOf is the downstream that object k of the desired state is of.
func (st *State) DownstreamOf(k int) *desired.Downstream {
	return st.Pipeline.Downstreams[st.Memory.Desired().Objects[k].Downstream]
}

// Recorded reads the identifiers of downstreams in the upstream's status.
func (st *State) Recorded() []status.Recorded { return st.Pipeline.Recorded(st.Upstream) }

// HasFinalizer reports whether the upstream has the config's finalizer, current or previous.
func (st *State) HasFinalizer() bool {
	return marks.HasFinalizer(st.Pipeline.Settings, st.Upstream)
}

// isForgotten reports whether an object of the kind of downstream i says that it is of one that the config no longer
// has, or has with another kind.
func isForgotten(s *operator.Settings, i int, name string) bool {
	home := s.IndexOf(name)
	return name != "" && (home < 0 || s.Downstreams[home].GVK().GroupKind() != s.Downstreams[i].GVK().GroupKind())
}

// isRecordedFor reports whether an object is recorded for certain.
func isRecordedFor(recorded []status.Recorded, uid types.UID) bool {
	return slices.ContainsFunc(recorded, func(rec status.Recorded) bool { return rec.UID == uid && !rec.Guessed })
}

// Trusted are the identifiers in the upstream's status, if it can be trusted.
func (st *State) Trusted() []status.Recorded {
	if !st.Pipeline.TrustsStatus() {
		return nil
	}
	return st.Recorded()
}

// Cascade is what the deletion of the upstream asks for.
func (st *State) Cascade() operator.Cascade {
	if c := operator.CascadeOf(st.Upstream.GetFinalizers()); c != operator.CascadeConfig {
		return c
	}
	if c := st.Cascades.Of(st.Upstream.GetUID()); c != operator.CascadeConfig {
		return c
	}
	return decide.RecordedCascade(st.Pipeline.Settings, st.Upstream)
}

// TargetAt is the index of the object of the desired state that is wanted at that place with the kind of downstream i,
// for whichever downstream; NoIndex, which is negative, for none.
func (st *State) TargetAt(i int, at operator.Ref) int {
	gk := st.Pipeline.Downstreams[i].GVK().GroupKind()
	for k, o := range st.Memory.Desired().Objects {
		if o.Wanted && o.Target == at && st.Pipeline.Downstreams[o.Downstream].GVK().GroupKind() == gk {
			return k
		}
	}
	return operator.NoIndex
}

// IsOwn reports whether an object of downstream i is the upstream's: the one of that uid, which the status records, or
// any if uid is empty.
func (st *State) IsOwn(i int, live *drift.Live, uid types.UID) bool {
	d := st.Pipeline.Downstreams[i]
	if uid == "" {
		return marks.OwnsFor(d.Downstream, live, st.Upstream.GetUID(), false)
	}
	// One without a mark that the API server does not record as applied by us was released, perhaps by a process that
	// could not say so in the status any more: a release takes that record, too. With an owner reference alone it is
	// another operator's, which selected the upstream by other labels and recorded it.
	hasMark := live.Hash != "" || live.Managed && !recordedFields(st, i, uid)
	return live.UID == uid && hasMark && marks.OwnsFor(d.Downstream, live,
		st.Upstream.GetUID(), st.Pipeline.TrustsStatus())
}

// recordedFields reports whether the object of that uid is recorded as one of others, of which only fields were ours,
// and downstream i would own all of it.
func recordedFields(st *State, i int, uid types.UID) bool {
	return !st.Pipeline.Downstreams[i].OwnsFields() && slices.ContainsFunc(st.Recorded(), func(r status.Recorded) bool {
		return r.UID == uid && marks.IsOfFields(r.Hash)
	})
}

// IsOrphaned reports whether an object is the recorded one, without its owner mark because the garbage collector has
// removed its owner references: the other marks are removed next.
func (st *State) IsOrphaned(live *drift.Live, uid types.UID) bool {
	return live.UID == uid && st.Pipeline.Upstream.HasStatus && live.Managed &&
		st.Upstream.GetDeletionTimestamp() != nil &&
		st.Cascade() == operator.CascadeOrphan && !st.Memory.IsNotOurs(uid, st.Began)
}
