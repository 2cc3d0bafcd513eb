//go:build controlplane

package charts

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// grant is one right that a release gives: one verb on one resource in one place.
type grant struct {
	user      string // that of a ServiceAccount
	namespace string // "" for the whole cluster
	verb      string
	group     string
	resource  string
	name      string // "" for all
}

func (g grant) String() string {
	where := "in the whole cluster"
	if g.namespace != "" {
		where = "in namespace " + g.namespace
	}
	return strings.Join(strings.Fields(fmt.Sprintf("%s may %s %s.%s %s %s", g.user, g.verb, g.resource, g.group, g.name, where)), " ")
}

// grants returns every right that the bindings of a manifest give, each once, for the roles that it has.
func grants(t testing.TB, manifest string) []grant {
	t.Helper()
	return grantsOf(t, objects(t, manifest))
}

func isRole(o *unstructured.Unstructured) bool {
	return o.GetKind() == "Role" || o.GetKind() == "ClusterRole"
}

func grantsOf(t testing.TB, objects []*unstructured.Unstructured) (list []grant) {
	t.Helper()
	rules := map[string][]rbacv1.PolicyRule{}
	for _, o := range objects {
		if isRole(o) {
			rules[o.GetKind()+"/"+o.GetNamespace()+"/"+o.GetName()] = typed[rbacv1.ClusterRole](t, o).Rules
		}
	}
	for _, o := range objects {
		if o.GetKind() != "RoleBinding" && o.GetKind() != "ClusterRoleBinding" {
			continue
		}
		binding := typed[rbacv1.RoleBinding](t, o)
		role, ok := rules[binding.RoleRef.Kind+"/"+o.GetNamespace()+"/"+binding.RoleRef.Name]
		if !ok {
			t.Errorf("%s %s binds %s, which the manifest does not have", o.GetKind(), o.GetName(), binding.RoleRef.Name)
		}
		for _, subject := range binding.Subjects {
			user := "system:serviceaccount:" + subject.Namespace + ":" + subject.Name
			for _, rule := range role {
				list = append(list, each(rule, grant{user: user, namespace: o.GetNamespace()})...)
			}
		}
	}
	slices.SortFunc(list, func(a, b grant) int { return cmp.Compare(a.String(), b.String()) })
	return slices.Compact(list)
}

// inWords are rights as text, each once.
func inWords(list []grant) []string {
	words := map[string]bool{}
	for _, g := range list {
		words[g.String()] = true
	}
	return slices.Sorted(maps.Keys(words))
}

// each spells a rule out.
func each(rule rbacv1.PolicyRule, g grant) []grant {
	names := append(rule.ResourceNames, "")[:max(1, len(rule.ResourceNames))]
	var list []grant
	for _, g.group = range rule.APIGroups {
		for _, g.resource = range rule.Resources {
			for _, g.verb = range rule.Verbs {
				for _, g.name = range names {
					list = append(list, g)
				}
			}
		}
	}
	return list
}

// usedBy reports whether a request took the right.
func (g grant) usedBy(r testkit.Request) bool {
	if g.verb == "impersonate" {
		return r.Sender == g.user && r.User == "system:serviceaccount:"+g.namespace+":"+g.name
	}
	if r.User != g.user || r.Group != g.group || r.Resource != g.resource || g.namespace != "" && r.Namespace != g.namespace || g.name != "" &&
		r.Name != g.name {
		return false
	}
	// A server-side apply that makes its object takes the right to create it, too.
	return strings.EqualFold(r.Verb, g.verb) || g.verb == "create" && r.Verb == "PATCH" && r.Code == 201
}

// superfluous are those of the rights that no request took, in words.
func superfluous(granted []grant, requests []testkit.Request) []string {
	return inWords(slices.DeleteFunc(slices.Clone(granted), func(g grant) bool {
		// Whether a kind is gone is asked where one is not served, which TestGone and TestReleaseOfKindsThatAreNotServed
		// hold.
		return g.verb == "list" && g.resource == "customresourcedefinitions" || slices.ContainsFunc(requests, g.usedBy)
	}))
}

// missing are the requests that were forbidden to those who have the rights by a release in the namespace, in words. A
// process that is ending while helm takes its rights away may ask for something still; what helm does for releases of
// other tests meanwhile says nothing.
func missing(granted []grant, namespace string, requests []testkit.Request) []string {
	var list []grant
	taken := false
	for _, r := range requests {
		ours := r.Namespace == namespace || strings.HasPrefix(r.Name, namespace+":")
		if ours && r.Group == rbacv1.GroupName && testkit.Agent("Helm/")(r) && r.Mutating() {
			taken = r.Verb == "DELETE"
		}
		of := func(g grant) bool { return r.User == g.user || r.Sender == g.user }
		if !taken && r.Code == 403 && slices.ContainsFunc(granted, of) {
			list = append(list, grant{user: r.User, namespace: r.Namespace, verb: strings.ToLower(r.Verb), group: r.Group,
				resource: r.Resource, name: r.Name})
		}
	}
	return inWords(list)
}

// TestMissing: what is refused while helm takes the release's own roles away is excused, and nothing else is.
func TestMissing(t *testing.T) {
	t.Parallel()
	const user = "system:serviceaccount:ours:rel-corollary"
	role := func(verb, namespace, name string) testkit.Request {
		return testkit.Request{Verb: verb, Group: rbacv1.GroupName, Resource: "roles", Namespace: namespace, Name: name, UserAgent: "Helm/4"}
	}
	for _, tc := range []struct {
		reason string
		before testkit.Request
		want   int
	}{
		{"it is being installed", role("PATCH", "ours", "rel-corollary"), 1},
		{"it is being uninstalled", role("DELETE", "ours", "rel-corollary"), 0},
		{"it is being uninstalled, which takes a role in another namespace away", role("DELETE", "team", "ours:rel-corollary"), 0},
		{"another one is being uninstalled", role("DELETE", "theirs", "rel-corollary"), 1},
	} {
		refused := testkit.Request{Verb: "GET", Resource: "configmaps", Namespace: "team", User: user, Code: 403}
		meanwhile := role("PATCH", "theirs", "rel-corollary") // another one is being installed
		if got := missing([]grant{{user: user}}, "ours", []testkit.Request{tc.before, meanwhile, refused}); len(got) != tc.want {
			t.Errorf("%s: missing are %q", tc.reason, got)
		}
	}
}
