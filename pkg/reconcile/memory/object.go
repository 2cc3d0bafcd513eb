package memory

import (
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/canonical"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/operator"
)

// Object is what is remembered of one desired object.
type Object struct {
	_ [0]sync.Mutex // go vet reports copies: others may change what the upstream's lock guards meanwhile
	slot
	found
	// Since is the change of the desired state at which the object was wanted for the first time.
	Since int
	// read is the response to our last request, while it is newer than the cache. The upstream's lock guards it, and
	// baseline.
	read Rare[response]
	// baseline is the projection that our last apply returned if it differs from what we sent.
	baseline Rare[baseline]
}

// slot says which of the upstream's desired objects a part of the memory is about: the one of a downstream, wherever it
// is, or the one at a place of a downstream with several objects.
type slot struct {
	downstream int
	// item is the place of one of several objects; else zero.
	item operator.Ref
}

// found is what is remembered of the object that was found in a slot, or made there.
type found struct {
	UID types.UID
	// at is the place of the object of that uid.
	at operator.Ref
	// proof says that an update needs the object to be recreated.
	proof Rare[proof]
	// dryRun is the result of the last dry run for drift; nil if none was made.
	dryRun *dryRun
	// Contest is about the writes for the slot, to whichever object.
	Contest Rare[Contest]
	// Retry delays failed attempts; Failure is the reason while they wait.
	Retry   Rare[Retry]
	Failure *operator.Failure
	Unusual Rare[unusualObject]
}

// unusualObject is the memory that few desired objects need.
type unusualObject struct {
	// compared says what an apply would change, in mode Observe.
	compared comparison
	// ChangedBy says which fields another writer changed, as of the last time that was read.
	ChangedBy string
	// Generated are the generated values of the object GeneratedOf, which is being deleted at the target; nil if there is
	// none.
	Generated   map[string]string
	GeneratedOf types.UID
	// Verified is about the last update that changed which fields are ours.
	Verified Verification
	// rewritten are the fields of which the API server stored other values than were sent, at the last apply.
	rewritten string
}

// baseline is the projection of the object of that uid as an apply left it, or would leave it.
type baseline struct {
	uid types.UID
	sum *canonical.Sum
}

// proof is about the object of that uid at that version, for that hash, in the reconciliation that began then.
type proof struct {
	uid           types.UID
	version, hash string
	at            time.Time
}

// dryRun is whether a dry run found that nothing would change. It is about our fields alone: other changes of the
// object need no new dry run.
type dryRun struct {
	key  dryRunKey
	same bool
}

type dryRunKey struct {
	uid            types.UID
	p              canonical.Sum
	liveHash, hash string
	extra          bool
}

func dryRunKeyOf(live *drift.Live, hash string) dryRunKey {
	return dryRunKey{live.UID, live.P, live.Hash, hash, live.Extra}
}

// comparison is what an apply would change of an object, found without one.
type comparison struct {
	key  comparisonKey
	text string
}

// comparisonKey is what a comparison depends on. If the kind counts generations, a change of its status needs no new
// one.
type comparisonKey struct {
	uid           types.UID
	version, hash string
}

func comparisonKeyOf(live *drift.Live, hash string) comparisonKey {
	version := live.ResourceVersion
	if live.Generation > 0 {
		version = "generation " + strconv.FormatInt(live.Generation, 10)
	}
	return comparisonKey{live.UID, version, hash}
}

// Verification is what is known of the object of that uid since the update to that hash.
type Verification struct {
	UID  types.UID
	Hash string
	// IsPending is true until the object was compared with a new one.
	IsPending bool
	// Stale says in which fields it differs from a new one, and stays so.
	Stale string
}

// SetUID records that the object of that uid is ours. What is remembered of another one is dropped.
func (f *found) SetUID(uid types.UID, at operator.Ref) {
	if f.UID != uid {
		was := f.Unusual.Get()
		*f = found{Retry: f.Retry, Failure: f.Failure, proof: f.proof, Contest: f.Contest}
		f.inheritGenerated(was)
	}
	f.UID, f.at = uid, at // also if it is equal: it shares the memory of the state of the object that is cached now
}

// Applied records that an apply returned the object of that uid. Of another one, nothing is remembered but the writes.
func (f *found) Applied(uid types.UID, at operator.Ref) {
	if f.UID != uid {
		*f = found{UID: uid, Contest: f.Contest}
	}
	f.at = at
}

// Verdict is what was found out about the object, as long as the question is the same.
func (f *found) Verdict(live *drift.Live, hash string) operator.Verdict {
	p := f.proof.Get()
	v := operator.Verdict{Immutable: p.uid == live.UID && p.version == live.ResourceVersion && p.hash == hash}
	if f.dryRun != nil && f.dryRun.key == dryRunKeyOf(live, hash) {
		v.SameByDryRun = &f.dryRun.same
	}
	return v
}

// SetImmutable records whether the update to that hash needs the object to be recreated.
func (f *found) SetImmutable(is bool, live *drift.Live, hash string, now time.Time) {
	if f.proof.Reset(); is {
		*f.proof.Edit() = proof{live.UID, live.ResourceVersion, hash, now}
	}
}

// IsProvedAt reports whether that was proved by the reconciliation that began then.
func (f *found) IsProvedAt(now time.Time) bool { return f.proof.Get().at.Equal(now) }

// SetDryRun records whether a dry run of an apply changed nothing.
func (f *found) SetDryRun(live *drift.Live, hash string, same bool) {
	f.dryRun = &dryRun{dryRunKeyOf(live, hash), same}
}

// Compared says what an apply would change, if that was compared.
func (f *found) Compared(live *drift.Live, hash string) (text string, known bool) {
	if c := f.Unusual.Get().compared; c.key == comparisonKeyOf(live, hash) {
		return c.text, true
	}
	return "", false
}

// SetCompared records what an apply would change.
func (f *found) SetCompared(live *drift.Live, hash, text string) {
	f.Unusual.Edit().compared = comparison{comparisonKeyOf(live, hash), text}
}

// SetChangedBy sets which fields another writer changed; empty for none.
func (f *found) SetChangedBy(fields string) {
	f.Unusual.Set(fields != "", func(u *unusualObject) { u.ChangedBy = fields })
}

// SetRewritten sets of which fields the API server stored other values than were sent.
func (f *found) SetRewritten(fields string) {
	f.Unusual.Set(fields != "", func(u *unusualObject) { u.rewritten = fields })
}

// Rewritten is what SetRewritten set last for the object of that uid.
func (f *found) Rewritten(uid types.UID) string {
	if f.UID != uid {
		return ""
	}
	return f.Unusual.Get().rewritten
}

// inheritGenerated takes over generated values that are kept for the next object.
func (f *found) inheritGenerated(from unusualObject) {
	if from.Generated != nil {
		u := f.Unusual.Edit()
		u.Generated, u.GeneratedOf = from.Generated, from.GeneratedOf
	}
}

// startOver drops everything that delays work on a downstream, and nothing that is known about the object.
func (f *found) startOver() {
	f.Retry.Reset()
	f.proof.Reset()
	f.Failure, f.dryRun = nil, nil
	if f.Unusual.Get().Verified.Stale != "" {
		f.Unusual.Edit().Verified.IsPending = true
	}
	if f.Contest.Get().Unsettled > 0 {
		f.Contest.Edit().Unsettled = 0
	}
}
