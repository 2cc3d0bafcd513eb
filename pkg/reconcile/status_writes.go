package reconcile

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/pipeline"
)

// saying is the digest of what a status says for us, times and the conditions of others aside.
func (l *reconciliation) saying(want map[string]any) string {
	out := maps.Clone(l.Pipeline.OwnConditions(want))
	list, _ := out["conditions"].([]any)
	conditions := make(map[string]any, len(list))
	for _, item := range list {
		if c, ok := item.(map[string]any); ok {
			c = maps.Clone(c)
			delete(c, "lastTransitionTime")
			kind, _ := c["type"].(string)
			conditions[kind] = c
		}
	}
	out["conditions"] = conditions
	sum := drift.Digest(out)
	return string(sum[:])
}

// askedByOthers is the digest of what can be read and this operator did not write for the upstream itself: its own part of
// the status and the downstreams that are inputs are left out.
func (l *reconciliation) askedByOthers() drift.Sum {
	var status any
	if l.Pipeline.ReadsStatus() {
		status = l.Pipeline.OthersStatus(l.upstream)
	}
	digest := l.digest(status)
	own, digests := l.ownInputs(), make([]any, len(l.record.inputs))
	for i, ref := range l.record.inputs {
		if found := l.found[i]; found != nil && !slices.Contains(own, i) {
			digest := found.Digest()
			digests[i] = string(digest[:])
		} else if ref.Err != nil {
			digests[i] = ref.Err.Error()
		}
	}
	return drift.Digest([]any{string(digest[:]), digests})
}

// ownInputs are the inputs, by index, that are downstreams of this upstream, or were until just now.
func (l *reconciliation) ownInputs() []int {
	var own []int
	for i, found := range l.found {
		if !l.Pipeline.MayBeDownstream(i) {
			continue
		}
		at := l.record.inputs[i].At
		is := func(t target) bool {
			return found != nil && t.uid == found.GetUID() || found == nil && at.Name != "" && t.at == at
		}
		if slices.ContainsFunc(l.record.targets, is) || found != nil && l.record.knownGone(found.GetUID(), l.now) {
			own = append(own, i)
		}
	}
	return own
}

// causeOf is the digest of what the status follows from, less what writing it changes. Texts are left out: what they quote
// may be the status.
func (l *reconciliation) causeOf(results []pipeline.Result) drift.Sum {
	others := drift.Digest(l.Pipeline.OthersStatus(l.upstream))
	cause := []any{string(l.record.asked[:]), string(l.read[:]), string(others[:])}
	for _, r := range results {
		item := []any{string(r.Outcome.State), r.Unseen}
		if r.Failure != nil {
			item = append(item, r.Failure.Reason)
		}
		if r.Live != nil {
			item = append(item, string(r.Live.UID), r.Live.ResourceVersion)
		}
		cause = append(cause, item)
	}
	return drift.Digest(cause)
}

// causeOfDeletion is causeOf for an upstream that is being deleted, whose status follows from nothing that it says itself.
func (l *reconciliation) causeOfDeletion(report pipeline.Report) drift.Sum {
	cause := []any{string(l.record.asked[:])}
	for _, f := range report.Facts {
		cause = append(cause, f.Name, f.Reason, f.Message)
	}
	return drift.Digest(cause)
}

// statusContenders says why a status that was written does not settle.
func (l *reconciliation) statusContenders(report pipeline.Report, saying string) string {
	if saying == l.record.statusContest.wrote {
		if l.record.statusWriters == "" {
			return "another writer keeps writing over the status, which is written with growing delay"
		}
		return fmt.Sprintf("another writer keeps writing over the status, which is written with growing delay: fields of it are written by %s", l.record.statusWriters)
	}
	fields := l.Pipeline.ChangedFields(l.upstream, report.Status)
	if len(fields) == 0 {
		return "each write of the status changes what it shall say; it is written with growing delay"
	}
	return "each write of the status changes what it shall say, which is written with growing delay: " + strings.Join(fields, ", ")
}

// findStatusWriters reads who writes over the status, before ours takes the fields back, once it has come to a contest.
func (l *reconciliation) findStatusWriters(ctx context.Context, saying string) {
	c := &l.record.statusContest
	if c.unsettled < contestedAfter-1 || c.wrote != saying {
		return
	}
	if up, err := l.client.Get(ctx, l.UpstreamTarget(l.ref)); err == nil {
		l.record.statusWriters = statusWriters(up, l.Pipeline.Config.Conventions.FieldManager)
	}
}

// statusWriters are the other managers that own something of the status.
func statusWriters(up *unstructured.Unstructured, manager string) string {
	var names []string
	for _, e := range up.GetManagedFields() {
		if e.Manager != manager && e.FieldsV1 != nil && strings.Contains(e.FieldsV1.GetRawString(), `"f:status"`) && !slices.Contains(names, e.Manager) {
			names = append(names, e.Manager)
		}
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}
