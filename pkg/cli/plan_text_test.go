package cli

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/pipeline"
	"github.com/corollary-dev/corollary/pkg/reconcile"
)

// TestPlanGroupsSameChanges: fields that change in one way are printed once, for whatever else they change in that way.
func TestPlanGroupsSameChanges(t *testing.T) {
	item := func(n int, to string) planItem {
		at := pipeline.Ref{Namespace: "apps", Name: fmt.Sprintf("web-%d", n)}
		kind := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
		return planItem{operator: "app", upstream: objectRef{gvk: schema.GroupVersionKind{Kind: "App"}, at: at}, downstream: "deployment",
			object: objectRef{gvk: kind, at: at}, action: string(reconcile.ChangeUpdate), reason: "the spec has changed", before: map[string]any{},
			diffs: []fieldDiff{{path: fieldpath.New("spec", "replicas"), before: int64(1), after: to}}}
	}
	var out strings.Builder
	printer := &planText{w: &out}
	for n := range 14 {
		if err := printer.item(item(n, "2")); err != nil {
			t.Fatal(err)
		}
	}
	for _, other := range []planItem{item(14, "3"), item(15, "3"), item(16, "4")} {
		if err := printer.item(other); err != nil {
			t.Fatal(err)
		}
	}
	refused := item(17, "2")
	refused.failure = &pipeline.Failure{Reason: "Rejected", Message: "no"}
	if err := printer.item(refused); err != nil {
		t.Fatal(err)
	}
	if err := printer.end(map[string]int{string(reconcile.ChangeUpdate): 18}); err != nil {
		t.Fatal(err)
	}
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
		at := pipeline.Ref{Namespace: "apps", Name: "db" + risk[:min(1, len(risk))]}
		if err := printer.item(planItem{operator: "db", upstream: objectRef{gvk: schema.GroupVersionKind{Kind: "Database"}, at: at},
			object: objectRef{gvk: schema.GroupVersionKind{Kind: "Secret"}, at: at}, action: string(reconcile.ChangeCreate),
			reason: "absent", risk: risk}); err != nil {
			t.Fatal(err)
		}
	}
	if err := printer.stop(); err != nil {
		t.Fatal(err)
	}
	const want = "Risk: Database apps/dba Secret apps/dba: a new random value for data.password: it is lost\n\n" +
		"Database apps/db (operator db)\n"
	if !strings.HasPrefix(out.String(), want) || strings.Count(out.String(), "+ create") != 2 {
		t.Errorf("the plan is\n%s", out.String())
	}
}
