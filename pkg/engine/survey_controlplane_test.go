//go:build controlplane

package engine_test

import (
	"context"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/survey"
)

// TestSurveyWithoutTheRightToPatch: whoever may only read still sees what would be done, and that nobody was asked.
func TestSurveyWithoutTheRightToPatch(t *testing.T) {
	t.Parallel()
	ns := testkit.Namespace(t)
	text := fill(widgetConfig, ns, "reader")
	leave(t, ns, text, "same", "changed", "renamed")
	testkit.Apply(t, ns, widget("changed", "{data: {a: c}}"))
	testkit.Apply(t, ns, widget("renamed", "{data: {a: b}, name: other}"))
	reader := testkit.User(t, "reader",
		rbacv1.PolicyRule{APIGroups: []string{"", "test.example.com"}, Resources: []string{"configmaps", "widgets"}, Verbs: []string{"get", "list", "watch"}})

	found := surveyAll(t, reader, survey.Options{Documents: true}, text)
	found.expect(t, "same", "none same")
	found.expect(t, "renamed", "create other, supersede renamed")
	c := found.expect(t, "changed", "update changed").Changes[0]
	if !strings.Contains(c.Note, "not allowed to make") || c.After == nil || dataOf(c.After) != "c" {
		t.Errorf("the change is %+v", c)
	}
}

// TestSurveyForbidden: a kind that may not be watched is an error that says so, not a wait.
func TestSurveyForbidden(t *testing.T) {
	t.Parallel()
	ns := testkit.Namespace(t)
	nobody := testkit.User(t, "stranger", rbacv1.PolicyRule{APIGroups: []string{"test.example.com"}, Resources: []string{"widgets"}, Verbs: []string{"get", "list", "watch"}})
	s, err := survey.NewSurveyor(nobody, survey.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if v, err := s.Open(ctx, load(t, fill(widgetConfig, ns, "stranger"))); err == nil || !strings.Contains(err.Error(), "watching configmaps in namespace "+ns+" is forbidden") {
		t.Errorf("opened %v, %v", v, err)
	}
}
