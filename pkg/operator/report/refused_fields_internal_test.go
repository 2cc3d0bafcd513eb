package report

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/operator"
)

// TestBlamed: which fields a refusal is about.
func TestBlamed(t *testing.T) {
	p := &operator.Settings{}
	for _, path := range []string{".status.phase", ".status.phases", ".status.range.min", ".status.range.max", ".status.names"} {
		p.StatusFields = append(p.StatusFields, fieldpath.MustParse(path))
	}
	cause := func(kind metav1.CauseType, field string) metav1.StatusCause {
		return metav1.StatusCause{Type: kind, Field: field}
	}
	one := func(i int, kind metav1.CauseType, alone bool) map[int]refusal {
		return map[int]refusal{i: {why: string(kind), alone: alone}}
	}
	const enum, invalid = metav1.CauseTypeFieldValueNotSupported, metav1.CauseTypeFieldValueInvalid
	const required, many = metav1.CauseTypeFieldValueRequired, metav1.CauseTypeTooMany
	both := map[int]refusal{2: {why: string(invalid)}, 3: {why: string(invalid)}}
	all := map[int]refusal{}
	for i := range p.StatusFields {
		all[i] = refusal{why: string(many)}
	}
	for _, row := range []struct {
		reason string
		causes []metav1.StatusCause
		want   map[int]refusal
	}{
		{"no cause", nil, map[int]refusal{}},
		{"the field itself, and not one whose name begins alike", []metav1.StatusCause{cause(enum, "status.phase")}, one(0, enum, true)},
		{"an item of it", []metav1.StatusCause{cause(enum, "status.phases[3].name")}, one(1, enum, true)},
		{"a key of it, dots or not", []metav1.StatusCause{cause(enum, "status.names.a.b/c")}, one(4, enum, true)},
		{"another value may be to blame", []metav1.StatusCause{cause(invalid, "status.phase")}, one(0, invalid, false)},
		{"two causes: one of them may be another value's fault",
			[]metav1.StatusCause{cause(enum, "status.phase"), cause(invalid, "status.phase")}, one(0, invalid, false)},
		{"their order does not count", []metav1.StatusCause{cause(invalid, "status.phase"), cause(enum, "status.phase")}, one(0, invalid, false)},
		{"a rule over an object", []metav1.StatusCause{cause(invalid, "status.range")}, both},
		{"a rule that names a field", []metav1.StatusCause{cause(invalid, "status.range.min")}, one(2, invalid, false)},
		{"what lacks beside them", []metav1.StatusCause{cause(invalid, "status.range.step")}, both},
		{"too many keys beside each other are nobody's alone", []metav1.StatusCause{cause(many, "status")}, all},
		{"something else of the status", []metav1.StatusCause{cause(many, "status.conditions")}, all},
		{"something else", []metav1.StatusCause{cause(required, "spec.size"), cause(invalid, "<nil>"), cause(invalid, "")}, map[int]refusal{}},
	} {
		if diff := cmp.Diff(row.want, refusedFields(p, row.causes), cmp.AllowUnexported(refusal{})); diff != "" {
			t.Errorf("%s: %s", row.reason, diff)
		}
	}
}
