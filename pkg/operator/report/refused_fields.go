package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/canonical"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/status"
)

// This file is about values of status.fields that cannot be stored; items of status.downstreams are like them. Whoever
// writes an upstream may choose them: they must not keep the conditions out of its status.

// RefusedFields are values of status.fields, and items of status.downstreams, that the API server refuses. The zero
// value has none. It is immutable.
type RefusedFields struct {
	by    map[int]refusal        // by index in status.fields
	items map[string]refusedItem // by name
	// stay: the API server does not take the status without them either, so all fields stay as they were.
	stay bool
}

// Any reports whether there are any.
func Any(r RefusedFields) bool { return len(r.by)+len(r.items) > 0 }

type refusal struct {
	why string
	// alone: what is wrong with the value is wrong whatever else the status says.
	alone bool
	// of is the digest of what was refused: the value and, unless it is wrong alone, everything that a rule may compare it
	// with.
	of canonical.Sum
}

// wrongAlone are the causes that no other value can take away.
var wrongAlone = []metav1.CauseType{metav1.CauseTypeFieldValueNotSupported,
	metav1.CauseTypeTooLong, metav1.CauseTypeTooMany}

// WithoutRefused returns a report without the values that were refused before, as far as these are the same now.
func WithoutRefused(
	s *operator.Settings, report Report, upstream *unstructured.Unstructured, before RefusedFields,
) Report {
	if report.draft == nil || !Any(before) {
		return report
	}
	still := RefusedFields{by: map[int]refusal{}, items: map[string]refusedItem{}, stay: before.stay}
	for i, r := range before.by {
		if r.of == refusedOf(s, report.draft, upstream, i, r.alone) {
			still.by[i] = r
		}
	}
	for name, r := range before.items {
		if r.of == refusedItemOf(s, report.draft, upstream, name, r.alone) {
			still.items[name] = r
		}
	}
	if Any(still) {
		fill(s, &report, upstream, still)
	}
	return report
}

// Refuse returns a report without what the API server has just refused, besides what it was without already: what the
// causes name, or else all of status.fields. Where it is refused for what it lacks, these stay as they were, and at
// last, or where there are none, the items of status.downstreams do, too. ok is false if nothing of this is left to do.
// reason is why, in a word.
func Refuse(
	s *operator.Settings, report Report, upstream *unstructured.Unstructured, causes []metav1.StatusCause,
	reason string, last bool,
) (without Report, ok bool) {
	before := report.Refused
	if report.draft == nil {
		return report, false
	}
	named, items := refusedFields(s, causes), refusedItems(s, report, upstream, causes)
	next := RefusedFields{by: maps.Clone(named), items: before.items, stay: before.stay}
	maps.Copy(next.by, before.by)
	news := refuseItems(s, report.draft, &next, items, false, reason) || len(next.by) > len(before.by)
	if !news && !before.stay && len(s.StatusFields) > 0 {
		next.stay, news = len(named)+len(items) > 0 || len(before.by) == len(s.StatusFields), true
		refuseFields(s, &next, reason)
	}
	if last {
		refuseFields(s, &next, reason)
	}
	if last || !news {
		news = refuseItems(s, report.draft, &next, nil, true, reason) || news
	}
	if !news {
		return report, false
	}
	for i, r := range next.by {
		r.alone = r.alone && !next.stay
		r.of = refusedOf(s, report.draft, upstream, i, r.alone)
		next.by[i] = r
	}
	for name, r := range next.items {
		r.of = refusedItemOf(s, report.draft, upstream, name, r.alone)
		next.items[name] = r
	}
	fill(s, &report, upstream, next)
	return report, true
}

// refuseFields takes in that all of status.fields are refused.
func refuseFields(s *operator.Settings, next *RefusedFields, reason string) {
	for i := range s.StatusFields {
		if _, known := next.by[i]; !known {
			next.by[i] = refusal{why: reason}
		}
	}
}

// refusedOf is the digest of what may be wrong with field i.
func refusedOf(s *operator.Settings, d *draft, upstream *unstructured.Unstructured, i int, alone bool) canonical.Sum {
	if v := d.fields[i]; alone {
		return canonical.Digest([]any{v.value, v.set})
	}
	return wholeOf(s, d, upstream)
}

// wholeOf is the digest of all that a status is made of.
func wholeOf(s *operator.Settings, d *draft, upstream *unstructured.Unstructured) canonical.Sum {
	of := []any{upstream.GetGeneration(), OthersStatus(s, upstream), status.RecordedList(d.recorded)}
	for _, v := range d.fields {
		of = append(of, v.value, v.set)
	}
	for _, c := range append(status.Summarize(d.summary), d.more...) {
		of = append(of, c.Type, string(c.Status), c.Reason, c.Message)
	}
	return canonical.Digest(of)
}

// refusedFields are the fields that the causes of a refusal are about. A cause below a field is about that one, a cause
// above it, such as a rule over several fields, about all of these; what is missing beside fields is their object's
// fault.
func refusedFields(s *operator.Settings, causes []metav1.StatusCause) map[int]refusal {
	all := map[int]refusal{}
	for _, c := range causes {
		if s.DownstreamsPath != nil && isWithin(c.Field, asCause(s.DownstreamsPath)) {
			continue // see refusedItems
		}
		found := false
		for at := c.Field; at != "" && !found; at = at[:max(0, strings.LastIndexAny(at, ".["))] {
			for i, field := range s.StatusFields {
				path := asCause(field)
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

// isWithin reports whether a path is another one or lies below it, both as the API server writes them.
func isWithin(path, above string) bool {
	rest, ok := strings.CutPrefix(path, above)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// refusalText says which values are not in the status, and why. It quotes none: they may be long, and are not
// everybody's.
func refusalText(s *operator.Settings, d *draft, refused RefusedFields) string {
	var list []string
	for i, path := range s.StatusFields {
		r, ok := refused.by[i]
		if !ok && !fitsType(s, path, d.fields[i]) {
			r.why, ok = string(metav1.CauseTypeTypeInvalid), true
		}
		if ok {
			list = append(list, fmt.Sprintf("%s (%s)", path, r.why))
		}
	}
	items := refusedItemsText(s, refused)
	switch {
	case len(list) == 0 && len(items) == 0:
		return ""
	case len(list) == 0:
		return "items of status.downstreams that cannot be stored are unchanged or left out: " + strings.Join(items, ", ")
	}
	if list = append(list, items...); refused.stay {
		return "status.fields are unchanged, because values cannot be stored: " + strings.Join(list, ", ")
	}
	return "values of the status that cannot be stored are left out: " + strings.Join(list, ", ")
}

// fitsType reports whether the schema takes a value of that type where it has such a field at all.
func fitsType(s *operator.Settings, path fieldpath.Path, v fieldValue) bool {
	if !v.fresh || s.Storable == nil {
		return true
	}
	content := map[string]any{}
	_ = fieldpath.Set(map[string]any{"status": content}, path, v.value)
	_, dropped := s.Storable.Fit(content)
	return !slices.ContainsFunc(dropped, s.Storable.Stores)
}
