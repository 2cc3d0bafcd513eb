package pipeline

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/status"
)

// This file is about values of status.fields that cannot be stored. Whoever writes an upstream may choose them: they must not
// keep the conditions out of its status.

// RefusedFields are values of status.fields that the API server refuses. The zero value has none. It is immutable.
type RefusedFields struct {
	by map[int]refusal // by index in status.fields
	// stay: the API server does not take the status without them either, so all fields stay as they were.
	stay bool
}

// Any tells whether there are any.
func (r RefusedFields) Any() bool { return len(r.by) > 0 }

type refusal struct {
	why string
	// alone: what is wrong with the value is wrong whatever else the status says.
	alone bool
	// of is the digest of what was refused: the value and, unless it is wrong alone, everything that a rule may compare it with.
	of drift.Sum
}

// wrongAlone are the causes that no other value can take away.
var wrongAlone = []metav1.CauseType{metav1.CauseTypeFieldValueNotSupported, metav1.CauseTypeTooLong, metav1.CauseTypeTooMany}

// WithoutRefused returns a report without the values that were refused before, as far as these are the same now.
func (p *Pipeline) WithoutRefused(report Report, upstream *unstructured.Unstructured, before RefusedFields) Report {
	if report.draft == nil || !before.Any() {
		return report
	}
	still := RefusedFields{by: map[int]refusal{}, stay: before.stay}
	for i, r := range before.by {
		if r.of == p.refusedOf(report.draft, upstream, i, r.alone) {
			still.by[i] = r
		}
	}
	if still.Any() {
		p.fill(&report, upstream, still)
	}
	return report
}

// Refuse returns a report without the values that the API server has just refused, besides those that it was without already:
// those that the causes name, or all where none is named or this is the last attempt. Where it is refused for what it lacks,
// all stay as they were. ok is false where nothing of this is left to do. reason is why, in a word.
func (p *Pipeline) Refuse(report Report, upstream *unstructured.Unstructured, causes []metav1.StatusCause, reason string, last bool) (without Report, ok bool) {
	before := report.Refused
	if report.draft == nil || len(p.fields) == 0 || before.stay {
		return report, false
	}
	named := p.blamed(causes)
	next := RefusedFields{by: maps.Clone(named)}
	maps.Copy(next.by, before.by)
	next.stay = len(named) > 0 && len(next.by) == len(before.by) || len(before.by) == len(p.fields)
	for i := range p.fields {
		r, blamed := next.by[i]
		if !blamed && (next.stay || last || len(named) == 0) {
			r, blamed = refusal{why: reason}, true
		}
		if blamed {
			r.alone = r.alone && !next.stay
			r.of = p.refusedOf(report.draft, upstream, i, r.alone)
			next.by[i] = r
		}
	}
	p.fill(&report, upstream, next)
	return report, true
}

// refusedOf is the digest of what may be wrong with field i.
func (p *Pipeline) refusedOf(d *draft, upstream *unstructured.Unstructured, i int, alone bool) drift.Sum {
	if v := d.fields[i]; alone {
		return drift.Digest([]any{v.value, v.set})
	}
	of := []any{upstream.GetGeneration(), p.OthersStatus(upstream), status.RecordedList(d.recorded)}
	for _, v := range d.fields {
		of = append(of, v.value, v.set)
	}
	for _, c := range append(status.Summarize(d.summary), d.more...) {
		of = append(of, c.Type, string(c.Status), c.Reason, c.Message)
	}
	return drift.Digest(of)
}

// blamed are the fields that the causes of a refusal are about. A cause below a field is about that one, a cause above it, such
// as a rule over several fields, about all of these; what is missing beside fields is their object's fault.
func (p *Pipeline) blamed(causes []metav1.StatusCause) map[int]refusal {
	all := map[int]refusal{}
	for _, c := range causes {
		found := false
		for at := c.Field; at != "" && !found; at = at[:max(0, strings.LastIndexAny(at, ".["))] {
			for i, f := range p.fields {
				path := asCause(f.path)
				if !isWithin(at, path) && !isWithin(path, at) {
					continue
				}
				found = true
				r, known := all[i]
				alone := slices.Contains(wrongAlone, c.Type) && isWithin(c.Field, path) && (r.alone || !known)
				if !known || string(c.Type) < r.why { // the API server's order is not always the same
					r.why = string(c.Type)
				}
				r.alone = alone
				all[i] = r
			}
		}
	}
	return all
}

// asCause is a path as the API server writes it.
func asCause(path fieldpath.Path) string {
	fields := make([]string, len(path))
	for i, step := range path {
		fields[i] = step.Field
	}
	return strings.Join(fields, ".")
}

// isWithin tells whether a path is another one or lies below it, both as the API server writes them.
func isWithin(path, above string) bool {
	rest, ok := strings.CutPrefix(path, above)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// refusalText says which values are not in the status, and why. It quotes none: they may be long, and are not everybody's.
func (p *Pipeline) refusalText(d *draft, refused RefusedFields) string {
	var list []string
	for i, f := range p.fields {
		r, ok := refused.by[i]
		if !ok && !p.fitsType(f.path, d.fields[i]) {
			r.why, ok = string(metav1.CauseTypeTypeInvalid), true
		}
		if ok {
			list = append(list, fmt.Sprintf("%s (%s)", f.path, r.why))
		}
	}
	switch {
	case len(list) == 0:
		return ""
	case refused.stay:
		return "status.fields stay as they were, since values cannot be stored: " + strings.Join(list, ", ")
	}
	return "values of status.fields that cannot be stored are left out: " + strings.Join(list, ", ")
}

// fitsType tells whether the schema takes a value of that type where it has such a field at all.
func (p *Pipeline) fitsType(path fieldpath.Path, v fieldValue) bool {
	if !v.fresh || p.Storable == nil {
		return true
	}
	content := map[string]any{}
	_ = fieldpath.Set(map[string]any{"status": content}, path, v.value)
	_, dropped := p.Storable.Fit(content)
	return !slices.ContainsFunc(dropped, p.Storable.Stores)
}
