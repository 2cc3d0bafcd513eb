package write

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/canonical"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/report"
)

// statusDigest is the digest of our part of a status, without times.
func statusDigest(s *operator.Settings, want map[string]any) string {
	out := maps.Clone(report.OwnConditions(s, want))
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
	sum := canonical.Digest(out)
	return string(sum[:])
}

// CauseOf is the digest of what the status follows from, without what its write changes. Messages are left out: they
// may quote the status.
func (w *Writer) CauseOf(results []operator.Result, leftovers []operator.Outcome) canonical.Sum {
	others := canonical.Digest(report.OthersStatus(w.Pipeline.Settings, w.Upstream))
	because := w.Memory.Cause()
	cause := []any{string(because[:]), string(w.InputsDigest[:]), string(others[:])}
	for _, result := range results {
		item := []any{string(result.Outcome.State), result.Unseen}
		if result.Failure != nil {
			item = append(item, result.Failure.Reason)
		}
		switch {
		case result.Live != nil:
			item = append(item, string(result.Live.UID), result.Live.ResourceVersion)
		case result.Outcome.Live != nil: // an object of others, of which the message says whose it is
			item = append(item, string(result.Outcome.Live.UID))
		}
		cause = append(cause, item)
	}
	for _, o := range leftovers { // they go one by one, and some wait for others
		cause = append(cause, string(o.Live.UID), o.Live.ResourceVersion)
	}
	return canonical.Digest(cause)
}

// CauseOfDeletion is causeOf for an upstream that is being deleted, whose status does not depend on itself.
func (w *Writer) CauseOfDeletion(report report.Report) canonical.Sum {
	because := w.Memory.Cause()
	cause := []any{string(because[:])}
	for _, f := range report.Facts {
		cause = append(cause, f.Name, f.Reason, f.Message)
	}
	return canonical.Digest(cause)
}

// statusContenders says why writes of the status do not last.
func (w *Writer) statusContenders(wanted report.Report, saying string) string {
	if c := w.Memory.Contests.Get().Status; saying == c.Written {
		if c.Writers == "" {
			return "another writer keeps overwriting the status; it is written with growing delay"
		}
		return fmt.Sprintf("another writer keeps overwriting the status; it is written with growing delay: its fields are "+
			"written by %s", c.Writers)
	}
	fields := report.ChangedFields(w.Pipeline.Settings, w.Upstream, wanted.Status)
	if len(fields) == 0 {
		return "each write of the status changes the desired status; it is written with growing delay"
	}
	return "each write of the status changes the desired status; it is written with growing delay: " +
		strings.Join(fields, ", ")
}

// findStatusWriters reads who overwrites the status, before our write takes the fields back, once that is contested.
func (w *Writer) findStatusWriters(ctx context.Context, saying string) {
	if !w.Memory.Contests.Get().Status.IsContested(saying) {
		return
	}
	if up, err := w.API.Get(ctx, w.target()); err == nil {
		w.Memory.Contests.Edit().Status.Writers = statusWriters(up, w.Pipeline.Config.Conventions.FieldManager)
	}
}

// statusWriters are the other managers of status fields.
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
