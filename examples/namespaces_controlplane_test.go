//go:build controlplane

package examples_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/internal/testkit"
)

var roleBindings = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings"}

// TestNamespaceDefaultDeny: what a Namespace has by its label it loses with it, also while nobody looks.
func TestNamespaceDefaultDeny(t *testing.T) {
	t.Parallel()
	label := func(ns, value string) {
		testkit.Patch(t, namespaces, "", ns, "somebody", `{"metadata":{"labels":{"tools.example.com/isolation":`+value+`}}}`)
	}
	stands := func(ns string) {
		t.Helper()
		await(t, networkPolicies, ns, "default-deny", fields{".spec.policyTypes": []any{"Ingress", "Egress"}, ".spec.ingress": nil, ".spec.egress": nil})
		await(t, resourceQuotas, ns, "default", fields{".spec.hard": map[string]any{"pods": "50", "requests.cpu": "8", "requests.memory": "16Gi"}})
	}
	first, second, other := testkit.Namespace(t), testkit.Namespace(t), testkit.Namespace(t)
	o := runExample(t, "namespace-default-deny")
	label(first, `"default-deny"`)
	label(second, `"default-deny"`)
	label(other, `"none"`)
	stands(first)
	stands(second)

	testkit.Patch(t, resourceQuotas, first, "default", "somebody", `{"spec":{"hard":{"pods":"500"}}}`)
	testkit.Delete(t, networkPolicies, first, "default-deny")
	stands(first)

	label(first, "null")
	gone(t, networkPolicies, first, "default-deny")
	gone(t, resourceQuotas, first, "default")
	o.idle()
	stands(second)
	if testkit.Find(t, networkPolicies, other, "default-deny") != nil {
		t.Error("a Namespace with another label has a policy")
	}

	o.halt()
	label(second, `"none"`) // while nobody looks: at a start that looks like a changed selector, which deletes nothing
	o = runExample(t, "namespace-default-deny")
	o.idle()
	stands(second)
	label(second, `"default-deny"`)
	o.idle()
	stands(second)
	label(second, `"none"`)
	gone(t, networkPolicies, second, "default-deny")
	gone(t, resourceQuotas, second, "default")
}

// TestTeam: Namespaces follow from a Team, with what is in them, and all go with the stage or the Team.
func TestTeam(t *testing.T) {
	t.Parallel()
	teams, name := platform("teams"), "t-"+testkit.Unique(t)
	dev, prod := name+"-dev", name+"-prod"
	runExample(t, "team")
	testkit.Apply(t, "", "{apiVersion: platform.example.com/v1, kind: Team, metadata: {name: "+name+"}, spec: {group: developers, stages: {dev: edit, prod: view}}}")
	bound := func(group, role string) fields {
		return fields{".roleRef.name": role, ".subjects[kind=Group].name": group}
	}
	first := await(t, roleBindings, dev, "members", bound("developers", "edit"))
	await(t, roleBindings, prod, "members", bound("developers", "view"))
	await(t, resourceQuotas, prod, "team", fields{".spec.hard": map[string]any{"requests.cpu": "8"}})
	await(t, networkPolicies, prod, "same-namespace", fields{".spec.policyTypes": []any{"Ingress"}})
	await(t, teams, "", name, ready("True", "Ready", "").with(fields{".status.namespaces": []any{dev, prod}}))

	testkit.Patch(t, teams, "", name, "somebody", `{"spec":{"group":"engineers"}}`)
	if again := await(t, roleBindings, dev, "members", bound("engineers", "edit")); again.GetUID() != first.GetUID() {
		t.Error("another group took another RoleBinding, though its subjects can be changed")
	}
	testkit.Patch(t, teams, "", name, "somebody", `{"spec":{"stages":{"dev":"view"}}}`)
	if again := await(t, roleBindings, dev, "members", bound("engineers", "view")); again.GetUID() == first.GetUID() {
		t.Error("the RoleBinding is still the first one, though a roleRef cannot be changed")
	}
	testkit.Delete(t, roleBindings, dev, "members")
	await(t, roleBindings, dev, "members", bound("engineers", "view"))

	testkit.Patch(t, teams, "", name, "somebody", `{"spec":{"stages":{"prod":null}}}`)
	gone(t, namespaces, "", prod)
	await(t, teams, "", name, ready("True", "Ready", "").with(fields{".status.namespaces": []any{dev}}))
	testkit.Patch(t, teams, "", name, "somebody", `{"spec":{"group":"system:authenticated"}}`)
	await(t, teams, "", name, ready("False", "Invalid", "groups of the cluster itself get no namespace"))
	await(t, roleBindings, dev, "members", bound("engineers", "view"))

	testkit.Apply(t, dev, "{apiVersion: v1, kind: ConfigMap, metadata: {name: theirs}}")
	testkit.Delete(t, teams, "", name)
	gone(t, roleBindings, dev, "members")
	gone(t, namespaces, "", dev)
	gone(t, teams, "", name)
}

// TestTenant: each user has a RoleBinding, of one role, in the Namespace of the Tenant.
func TestTenant(t *testing.T) {
	t.Parallel()
	tenants, name := platform("tenants"), "t-"+testkit.Unique(t)
	home := "tenant-" + name
	runExample(t, "tenant")
	testkit.Apply(t, "", "{apiVersion: platform.example.com/v1, kind: Tenant, metadata: {name: "+name+`},
		spec: {users: [{name: alice@example.com, role: admin}, {name: bob@example.com}]}}`)
	await(t, roleBindings, home, "admin:alice@example.com", fields{".roleRef.name": "admin", ".subjects[kind=User].name": "alice@example.com"})
	bob := await(t, roleBindings, home, "edit:bob@example.com", fields{".roleRef.name": "edit"})
	await(t, resourceQuotas, home, "tenant", fields{".spec.hard": map[string]any{"pods": "20"}})
	await(t, tenants, "", name, ready("True", "Ready", "").with(fields{".status.namespace": home, ".status.users": int64(2)}))

	testkit.Patch(t, tenants, "", name, "somebody", `{"spec":{"users":[{"name":"bob@example.com"},{"name":"alice@example.com","role":"view"}]}}`)
	await(t, roleBindings, home, "view:alice@example.com", fields{".roleRef.name": "view"})
	gone(t, roleBindings, home, "admin:alice@example.com")
	if again := testkit.Get(t, roleBindings, home, "edit:bob@example.com"); again.GetUID() != bob.GetUID() {
		t.Error("the RoleBinding of a user who has only moved was made again")
	}
	testkit.Patch(t, tenants, "", name, "somebody", `{"spec":{"users":[{"name":"system:anonymous"}]}}`)
	await(t, tenants, "", name, ready("False", "Invalid", "accounts of the cluster itself are bound nowhere"))
	await(t, roleBindings, home, "edit:bob@example.com", fields{})
	testkit.Delete(t, tenants, "", name)
	gone(t, namespaces, "", home)
	gone(t, tenants, "", name)
}
