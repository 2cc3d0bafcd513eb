//go:build controlplane

package engine_test

import (
	"context"
	"regexp"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/survey"
)

// Two teams' configs in one process, which may do nothing itself: each works by the rights of its own ServiceAccount,
// and one that names the other team's namespace gets nothing there, though a watch of just that is open in the process.
func TestEachActsByItsOwnRights(t *testing.T) {
	t.Parallel()
	a, b, alice, bob := testkit.Namespace(t), testkit.Namespace(t), testkit.Unique(t), testkit.Unique(t)
	grant(t, a, a, alice, everythingOfIt)
	grant(t, b, b, bob, everythingOfIt)
	ofA, ofB, thief, reacher := testkit.Unique(t), testkit.Unique(t), testkit.Unique(t), testkit.Unique(t)
	r := start(t, actor(t, alice, bob), acting(lettered(fill(widgetConfig, a, ofA), "A"), a, alice), acting(lettered(fill(widgetConfig, b, ofB), "B"), b, bob)).ready()
	for letter, ns := range map[string]string{"A": a, "B": b} {
		testkit.Apply(t, ns, widget("web", `{data: {key: value}}`))
		waitCondition(t, widgets, ns, "web", "Ready"+letter, "True")
		isRepaired(t, ns, "web", "key", "value")
	}

	thieves := lettered(fill(widgetConfig, b, thief), "C")
	r.write("c.yaml", acting(thieves, a, alice))
	r.reload()
	r.cannotRun(thief, "Forbidden", "watching widgets.test.example.com in namespace "+b, "grant ServiceAccount "+a+"/"+alice)

	r.write("c.yaml", acting(elsewhere(lettered(fill(widgetConfig, a, reacher), "C"), b, a), a, alice))
	r.reload()
	r.cannotRun(reacher, "Forbidden", "watching configmaps in namespace "+b, "grant ServiceAccount "+a+"/"+alice)

	r.write("c.yaml", thieves) // nor does the process have any rights
	r.reload()
	r.cannotRun(thief, "Forbidden", "widgets.test.example.com in namespace "+b)
	if message := r.problems(); strings.Contains(message, "ServiceAccount") || !strings.Contains(message, `User "process-`) {
		t.Error(message)
	}
	waitState(t, ofA, "Running")
	waitState(t, ofB, "Running")
}

// A changed identity is a changed config: it takes over once its own watches are in, and till then the one before goes
// on.
func TestReloadChangesTheIdentity(t *testing.T) {
	t.Parallel()
	ns, alice, bob, name := testkit.Namespace(t), testkit.Unique(t), testkit.Unique(t), testkit.Unique(t)
	grant(t, ns, ns, alice, everythingOfIt)
	counter := testkit.NewCounter()
	r := start(t, counter.Wrap(actor(t, alice, bob)), acting(fill(widgetConfig, ns, name), ns, alice)).ready()
	applyReady(t, ns, "a", `{data: {key: value}}`)
	quiet(t, counter)

	counter.Reset()
	r.reloadTo(acting(fill(widgetConfig, ns, name), ns, bob))
	r.waitSays("ReloadFailed: Forbidden", "grant ServiceAccount "+ns+"/"+bob)
	testkit.Apply(t, ns, widget("b", `{data: {key: value}}`)) // the one before is at work
	waitCondition(t, widgets, ns, "b", "Ready", "True")

	grant(t, ns, ns, bob, everythingOfIt)
	testkit.Eventually(t, patience, func() (bool, string) { err := r.Reloaded(nil); return err == nil, text(err) })
	waitState(t, name, "Running")
	testkit.Delete(t, roleBindings, ns, alice) // its rights are needed no more
	quiet(t, counter)
	if n := counter.Snapshot()["PATCH configmaps"]; n > 1 { // that of b
		t.Errorf("the change cost %d writes: %v", n-1, counter.Snapshot())
	}
	isRepaired(t, ns, "a", "key", "value")
}

// Which of two rights is missing is distinguished: that of the ServiceAccount, and that of the process to act as it.
func TestMayNotImpersonate(t *testing.T) {
	t.Parallel()
	ns, alice, name := testkit.Namespace(t), testkit.Unique(t), testkit.Unique(t)
	grant(t, ns, ns, alice, `[{apiGroups: [test.example.com], resources: [widgets], verbs: [list, watch]},
	  {apiGroups: [test.example.com], resources: [widgets/status], verbs: [patch]}, {apiGroups: [""], resources: [configmaps], verbs: [get, list, watch]}]`)
	cfg := testkit.User(t, name)
	config := acting(fill(widgetConfig, ns, name), ns, alice)
	r := start(t, cfg, config)
	r.cannotRun(name, "Forbidden", "acting as ServiceAccount "+ns+"/"+alice+" is forbidden", "grant this process impersonate on serviceaccounts "+alice+" in namespace "+ns)
	r.halt()

	may := actor(t, alice)
	start(t, may, config).ready()
	testkit.Apply(t, ns, widget("a", `{data: {key: value}}`))
	waitsFor(t, widgets, ns, "a", "Forbidden", "system:serviceaccount:"+ns+":"+alice, "patch configmaps in namespace "+ns)
}

// TestRights: a config that needs rights which are not there says which, and works once they are granted. Those that it
// implies are enough: they are the whole list for owner references in one namespace.
func TestRights(t *testing.T) {
	t.Parallel()
	ns, name := testkit.Namespace(t), testkit.Unique(t)
	r := start(t, testkit.User(t, name), fill(widgetConfig, ns, name))
	var message string
	testkit.Eventually(t, patience, func() (bool, string) {
		message = text(r.Ready(nil))
		return strings.Contains(message, "Forbidden") && strings.Contains(message, "get, list and watch"), message
	})
	user := regexp.MustCompile(`User "([^"]+)"`).FindStringSubmatch(message)
	if user == nil {
		t.Fatal("the message does not say who lacks the right: " + message)
	}
	subject := "{kind: User, apiGroup: rbac.authorization.k8s.io, name: '" + user[1] + "'}"
	grantTo(t, ns, "reads", subject, `[{apiGroups: ["", test.example.com], resources: [widgets, configmaps], verbs: [get, list, watch]},
	  {apiGroups: [test.example.com], resources: [widgets/status], verbs: [patch]}]`)
	r.ready()
	testkit.Apply(t, ns, widget("a", `{data: {key: value}}`))
	waitsFor(t, widgets, ns, "a", "Forbidden", "configmaps", "patch", ns)

	grantTo(t, ns, "writes", subject, `[{apiGroups: [""], resources: [configmaps], verbs: [create, patch, delete]}]`)
	waitCondition(t, widgets, ns, "a", "Ready", "True")
	testkit.Patch(t, widgets, ns, "a", "somebody", `{"spec":{"name":"b"}}`)
	waitGone(t, configMaps, ns, "a")
	waitCondition(t, widgets, ns, "a", "Ready", "True")
}

// TestUpstreamGoneWithItsFinalizer: an API server that deletes an upstream at the moment that its finalizer is added
// may not wait for it. What was made for it is cleaned up nevertheless, and the next upstream of that name is not in
// conflict with it.
func TestUpstreamGoneWithItsFinalizer(t *testing.T) {
	t.Parallel()
	for reason, row := range map[string]struct {
		more  string // of the config
		again bool   // an upstream of that name is created again
		held  bool   // another writer holds the object
		stays bool   // the object stays
	}{
		"gone":                         {},
		"created again":                {again: true},
		"created again, object held":   {again: true, held: true, more: "deletion: {wait: true}\n"},
		"the config observes":          {stays: true, more: "mode: Observe\n"},
		"a backup comes before":        {stays: true, more: "BEFORE"},
		"the watch may hide upstreams": {stays: true, more: "LABEL"},
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			ns, name := testkit.Namespace(t), testkit.Unique(t)
			plain := fill(strings.Replace(widgetConfig, "owner: {", "owner: {reference: false, ", 1), ns, name)
			conf := plain + row.more
			switch row.more {
			case "BEFORE":
				conf = fill(strings.Replace(withBefore(ns, name), "owner: {", "owner: {reference: false, ", 1), ns, name)
			case "LABEL":
				conf = strings.Replace(plain, "namespaces: ["+ns+"]}", "namespaces: ["+ns+"], labelSelector: {matchExpressions: [{key: x, operator: DoesNotExist}]}}", 1)
			}
			if row.more == "mode: Observe\n" {
				r := start(t, testkit.Config(t), plain)
				applyReady(t, ns, "w", "{data: {key: value}}")
				r.halt()
			}
			start(t, testkit.Config(t), conf)
			applyReady(t, ns, "w", "{data: {key: value}}")
			if row.held {
				testkit.Patch(t, configMaps, ns, "w", "another", `{"metadata":{"finalizers":["example.com/held"]}}`)
			}
			testkit.Vanish(t, widgets, ns, "w")
			if row.again {
				testkit.Apply(t, ns, widget("w", "{data: {key: again}}"))
			}
			if row.held {
				waitCondition(t, widgets, ns, "w", "Ready", "False")
				testkit.Patch(t, configMaps, ns, "w", "another", `{"metadata":{"finalizers":null}}`)
			}
			switch {
			case row.again:
				waitData(t, ns, "w", "key", "again")
				waitCondition(t, widgets, ns, "w", "Ready", "True")
			case row.stays:
				never(t, func() (bool, string) { return testkit.Find(t, configMaps, ns, "w") == nil, "the object is gone" })
			default:
				waitGone(t, configMaps, ns, "w")
			}
		})
	}
}

// TestSurveyOfAReader: anyone who may only read still sees what would be done, and that nobody was asked. A kind that
// may not be watched is an error that says so, not a wait.
func TestSurveyOfAReader(t *testing.T) {
	t.Parallel()
	ns := testkit.Namespace(t)
	text := fill(widgetConfig, ns, "reader")
	leave(t, ns, text, "same", "changed", "renamed")
	testkit.Apply(t, ns, widget("changed", "{data: {a: c}}"))
	testkit.Apply(t, ns, widget("renamed", "{data: {a: b}, name: other}"))
	reads := rbacv1.PolicyRule{APIGroups: []string{"", "test.example.com"}, Resources: []string{"widgets"}, Verbs: []string{"get", "list", "watch"}}
	s := must.Get(survey.NewSurveyor(testkit.User(t, "viewer", reads), survey.Options{})).In(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if v, err := s.Open(ctx, loadText(t, text)); err == nil || !strings.Contains(err.Error(), "watching configmaps in namespace "+ns+" is forbidden") {
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

// What a survey says an adopted object would be is what it becomes: what its maker set and the template does not have
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
			must.Same(t, asked(live), asked(c.After), row.reason, "the survey reports other changes than those made (-made +reported)")
			if n, _, _ := unstructured.NestedInt64(live.Object, "spec", "progressDeadlineSeconds"); n != 600 || live.GetLabels()["other"] != "stays" || live.GetAnnotations()["theirs"] != "" {
				t.Errorf("%s: it has come to be %v", row.reason, live.Object)
			}
		})
	}
}
