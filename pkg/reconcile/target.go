package reconcile

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/canonical"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/operator"
)

// target is the memory of one desired object.
type target struct {
	uid types.UID
	// at is the place of the object of that uid.
	at operator.Ref
	// probed is what probes said about an object.
	probed rare[probed]
	// dryRunAnswer is the result of the last dry run for drift; nil if none was made.
	dryRunAnswer *dryRunAnswer
	// contest is about the writes for the slot, to whichever object.
	contest rare[contest]
	// retry delays failed attempts; failure is the reason while they wait.
	retry   rare[retryState]
	failure *operator.Failure
	unusual rare[unusualTarget]
}

// unusualTarget is the memory that few desired objects need.
type unusualTarget struct {
	// compared says what an apply would change, in mode Observe.
	compared comparison
	// changedBy says which fields another writer changed, as of the last time that was read.
	changedBy string
	// generated are the generated values of the object generatedOf, which is being deleted at the target; nil if there is none.
	generated   map[string]string
	generatedOf types.UID
	// verified is about the last update that changed which fields are ours; see verify.
	verified verification
	// rewritten are the fields of which the API server stored other values than were sent, at the last apply.
	rewritten string
}

// probed is the verdict of probes on the object of that uid at that version, for that hash, in the reconciliation that began then.
type probed struct {
	verdict       operator.Verdict
	uid           types.UID
	version, hash string
	at            time.Time
}

// dryRunAnswer is whether a dry run found that nothing would change. It is about our fields alone: other changes of the object
// need no new dry run.
type dryRunAnswer struct {
	key  dryRunKey
	same bool
}

type dryRunKey struct {
	uid            types.UID
	p              canonical.Sum
	liveHash, hash string
	extra          bool
}

// verdictOf returns what probes said, as long as the question is the same.
func (t *target) verdictOf(live *drift.Live, hash string) operator.Verdict {
	if live == nil {
		return operator.Verdict{}
	}
	var v operator.Verdict
	if p := t.probed.get(); p.uid == live.UID && p.version == live.ResourceVersion && p.hash == hash {
		v = p.verdict
	}
	if t.dryRunAnswer != nil && t.dryRunAnswer.key == dryRunKeyOf(live, hash) {
		v.SameByDryRun = &t.dryRunAnswer.same
	}
	return v
}

func dryRunKeyOf(live *drift.Live, hash string) dryRunKey {
	return dryRunKey{live.UID, live.P, live.Hash, hash, live.Extra}
}

// setUID records that the object of that uid is ours. What is remembered of another one is dropped.
func (t *target) setUID(uid types.UID, at operator.Ref) {
	if t.uid != uid {
		was := t.unusual.get()
		*t = target{retry: t.retry, failure: t.failure, probed: t.probed, contest: t.contest}
		t.inheritGenerated(was)
	}
	t.uid, t.at = uid, at // also if it is equal: it shares the memory of the state of the object that is cached now
}

// noteChangedBy sets which fields another writer changed; empty for none.
func (t *target) noteChangedBy(fields string) {
	t.unusual.set(fields != "", func(u *unusualTarget) { u.changedBy = fields })
}

// inheritGenerated takes over generated values that are kept for the next object.
func (t *target) inheritGenerated(from unusualTarget) {
	if from.generated != nil {
		u := t.unusual.edit()
		u.generated, u.generatedOf = from.generated, from.generatedOf
	}
}

func (t *target) answered(live *drift.Live, hash string, at time.Time, change func(*operator.Verdict)) {
	v := t.verdictOf(live, hash)
	change(&v)
	*t.probed.edit() = probed{v, live.UID, live.ResourceVersion, hash, at}
}
