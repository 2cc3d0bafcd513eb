//go:build controlplane

package engine_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/survey"
)

// TestSurveyOfAReader: whoever may only read still sees what would be done, and that nobody was asked. A kind that may not be watched is an
// error that says so, not a wait.
func TestSurveyOfAReader(t *testing.T) {
	t.Parallel()
	ns := testkit.Namespace(t)
	text := fill(widgetConfig, ns, "reader")
	leave(t, ns, text, "same", "changed", "renamed")
	testkit.Apply(t, ns, widget("changed", "{data: {a: c}}"))
	testkit.Apply(t, ns, widget("renamed", "{data: {a: b}, name: other}"))
	reads := rbacv1.PolicyRule{APIGroups: []string{"", "test.example.com"}, Resources: []string{"widgets"}, Verbs: []string{"get", "list", "watch"}}
	s, err := survey.NewSurveyor(testkit.User(t, "stranger", reads), survey.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if v, err := s.Open(ctx, load(t, text)); err == nil || !strings.Contains(err.Error(), "watching configmaps in namespace "+ns+" is forbidden") {
		t.Errorf("opened %v, %v", v, err)
	}

	reads.Resources = append(reads.Resources, "configmaps")
	found := surveyAll(t, testkit.User(t, "reader", reads), survey.Options{Documents: true}, text)
	found.expect(t, "same", "none same")
	found.expect(t, "renamed", "create other, supersede renamed")
	c := found.expect(t, "changed", "update changed").Changes[0]
	if !strings.Contains(c.Note, "not allowed to make") || c.After == nil || dataOf(c.After) != "c" {
		t.Errorf("the change is %+v", c)
	}
}

// What a survey says an adopted object would be is what it comes to be: what its maker set and the template does not have
// goes, what the API server fills in stays or comes back, whoever owned it, and what others own stays.
func TestSurveyOfAdoptedDeployment(t *testing.T) {
	t.Parallel()
	const clash = `, ports: [{name: http, containerPort: 80}]`
	for _, row := range []struct {
		manager, reason, ports string
		apply                  bool
	}{
		{"kubectl-client-side-apply", "a POST makes its writer the owner of all that the API server filled in", "", false},
		{"kubectl", "of what an apply left out nobody is the owner", "", true},
		{"helm", "a POST, and its fields block the desired ones until they are removed", clash, false},
		{"argocd", "an apply, and its fields block the desired ones until they are removed", clash, true},
	} {
		t.Run(row.manager, func(t *testing.T) {
			t.Parallel()
			ns, name := testkit.Namespace(t), testkit.Unique(t)
			testkit.Apply(t, ns, widget("a", `{}`))
			makeDeployment(t, ns, row.manager, row.ports, row.apply)
			testkit.Patch(t, deployments, ns, "a", "other", `{"metadata": {"labels": {"other": "stays"}}, "spec": {"revisionHistoryLimit": 4}}`)
			conf := adoptingDeployment(ns, name, row.manager)
			c := surveyAll(t, testkit.Config(t), survey.Options{Documents: true}, conf).expect(t, "a", "update a").Changes[0]
			start(t, testkit.Config(t), conf).ready()
			waitThat(t, widgets, ns, "a", func(u *obj) bool { return len(downstreamsOf(u)) == 1 })
			live := testkit.Get(t, deployments, ns, "a")
			if diff := cmp.Diff(asked(live), asked(c.After)); diff != "" {
				t.Errorf("%s: the survey reports other changes than those made (-made +reported):\n%s", row.reason, diff)
			}
			if n, _, _ := unstructured.NestedInt64(live.Object, "spec", "progressDeadlineSeconds"); n != 600 || live.GetLabels()["other"] != "stays" || live.GetAnnotations()["theirs"] != "" {
				t.Errorf("%s: it has come to be %v", row.reason, live.Object)
			}
		})
	}
}
