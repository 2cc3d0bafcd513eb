//go:build controlplane

package engine_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// TestRights: a config that needs rights which are not there says which, and works once they are granted. Those that it implies are enough: they
// are the whole list for owner references in one namespace.
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

// TestUpstreamGoneWithItsFinalizer: an API server that deletes an upstream at the moment that its finalizer is added may not wait for it. What
// was made for it is cleaned up nevertheless, and the next upstream of that name is not in conflict with it.
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
