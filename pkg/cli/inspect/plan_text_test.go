package inspect

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/pkg/docdiff"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/reconcile/preview"
	"github.com/corollary-dev/corollary/pkg/survey/findings"
)

// TestPlanGroupsSameChanges: fields that change in one way are printed once, for whatever else they change in that way.
func TestPlanGroupsSameChanges(t *testing.T) {
	item := func(n int, to string) findings.Item {
		at := operator.Ref{Namespace: "apps", Name: fmt.Sprintf("web-%d", n)}
		kind := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
		about := findings.About{Operator: "app", Upstream: findings.Object{Kind: schema.GroupVersionKind{Kind: "App"}, At: at},
			Downstream: "deployment", Object: findings.Object{Kind: kind, At: at}, Reason: "the spec has changed"}
		return findings.Item{About: about, Action: string(preview.Update), Before: map[string]any{},
			Diffs: []docdiff.Field{{Path: fieldpath.New("spec", "replicas"), Before: int64(1), After: to}}}
	}
	var out strings.Builder
	printer := &planText{w: &out}
	for n := range 14 {
		must.Do(t, printer.item(item(n, "2")))
	}
	for _, other := range []findings.Item{item(14, "3"), item(15, "3"), item(16, "4")} {
		must.Do(t, printer.item(other))
	}
	refused := item(17, "2")
	refused.Failure = &operator.Failure{Reason: "Rejected", Message: "no"}
	must.Do(t, printer.item(refused))
	must.Do(t, printer.end(map[string]int{string(preview.Update): 18}))
	got := out.String()
	for text, count := range map[string]int{
		"update Deployment apps/web-0: ": 1,
		"update Deployment apps/web-1: ": 0,
		"~ update 13 more Deployment with the changes of apps/web-0: apps/web-1, apps/web-2,": 1,
		"apps/web-10 and 3 more (-o json lists all)\n":                                        1,
		"~ update 1 more Deployment with the changes of apps/web-14: apps/web-15\n":           1,
		"update Deployment apps/web-16: ":                                                     1,
		"update Deployment apps/web-17: Rejected: no":                                         1,
		"Plan: 18 to update": 1,
	} {
		if n := strings.Count(got, text); n != count {
			t.Errorf("%q is there %d times, want %d:\n%s", text, n, count, got)
		}
	}
}

// TestPlanBeginsWithRisks: what would be lost comes before everything else, also if the plan is incomplete.
func TestPlanBeginsWithRisks(t *testing.T) {
	var out strings.Builder
	printer := &planText{w: &out}
	for _, risk := range []string{"", "a new random value for data.password: it is lost"} {
		at := operator.Ref{Namespace: "apps", Name: "db" + risk[:min(1, len(risk))]}
		about := findings.About{Operator: "db", Upstream: findings.Object{Kind: schema.GroupVersionKind{Kind: "Database"}, At: at},
			Object: findings.Object{Kind: schema.GroupVersionKind{Kind: "Secret"}, At: at}, Reason: "absent"}
		must.Do(t, printer.item(findings.Item{About: about, Action: string(preview.Create), Risk: risk}))
	}
	must.Do(t, printer.stop())
	const want = "Risk: Database apps/dba Secret apps/dba: a new random value for data.password: it is lost\n\n" +
		"Database apps/db (operator db)\n"
	if !strings.HasPrefix(out.String(), want) || strings.Count(out.String(), "+ create") != 2 {
		t.Errorf("the plan is\n%s", out.String())
	}
}
