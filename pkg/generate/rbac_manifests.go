package generate

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// Manifest is an object to be applied, with what is said above it.
type Manifest struct {
	// Comment says what the object is for, in lines without #.
	Comment []string
	Object  map[string]any
	// Rules say the same of each of its rules; empty if it has none.
	Rules []string
}

// ServiceAccounts are the process's and those that operators act as.
func (r *RBAC) ServiceAccounts() []Manifest {
	list := []Manifest{account(r.Process, "The ServiceAccount of the process.")}
	var seen []Identity
	for _, g := range r.Grants {
		if g.To != r.Process && !slices.Contains(seen, g.To) {
			seen = append(seen, g.To)
			list = append(list, account(g.To, "Whom "+r.operatorsOf(g.To)+"."))
		}
	}
	return list
}

// operatorsOf is "operator a acts as" or "operators a, b act as".
func (r *RBAC) operatorsOf(to Identity) string {
	var names []string
	for _, g := range r.Grants {
		if g.To == to && !slices.Contains(names, g.Operator) {
			names = append(names, g.Operator)
		}
	}
	if len(names) == 1 {
		return "operator " + names[0] + " acts as"
	}
	return "operators " + strings.Join(names, ", ") + " act as"
}

func account(i Identity, comment string) Manifest {
	return Manifest{Comment: []string{comment}, Object: map[string]any{
		"apiVersion": "v1", "kind": rbacv1.ServiceAccountKind, "metadata": metadataOf(i.Namespace, i.Name),
	}}
}

// Roles are a Role and its binding for each grant in a namespace, a ClusterRole and its binding for each in the whole
// cluster. They are called NAME-OPERATOR, and what the process needs for itself NAME. Outside of the process's
// namespace its name and a colon precede that, so that processes of one name in two namespaces have roles of their
// own.
func (r *RBAC) Roles(name string) []Manifest {
	var list []Manifest
	for _, g := range r.Grants {
		own := g.roleName(name, r.Process.Namespace)
		list = append(list, g.role(own), g.binding(own))
	}
	return list
}

// roleName is that of the role and the binding of a process in the namespace home.
func (g *Grant) roleName(prefix, home string) string {
	if g.Namespace != home {
		prefix = home + ":" + prefix
	}
	if g.Operator == "" {
		return prefix
	}
	return prefix + "-" + g.Operator
}

func (g *Grant) role(name string) Manifest {
	kind, where := "Role", "in namespace "+g.Namespace
	if g.Namespace == "" {
		kind, where = "ClusterRole", "everywhere"
	}
	m := Manifest{Comment: []string{"What operator " + g.Operator + " needs " + where + "."}}
	if g.Operator == "" {
		m.Comment[0] = "What the process itself needs " + where + "."
	}
	for _, rule := range g.Rules {
		m.Rules = append(m.Rules, strings.Join(rule.For, ", "))
	}
	m.Object = map[string]any{"apiVersion": rbacv1.SchemeGroupVersion.String(), "kind": kind,
		"metadata": metadataOf(g.Namespace, name),
		"rules":    g.policyRules()}
	return m
}

func (g *Grant) binding(name string) Manifest {
	kind, role := "RoleBinding", "Role"
	if g.Namespace == "" {
		kind, role = "ClusterRoleBinding", "ClusterRole"
	}
	return Manifest{Object: map[string]any{
		"apiVersion": rbacv1.SchemeGroupVersion.String(), "kind": kind, "metadata": metadataOf(g.Namespace, name),
		"roleRef":  map[string]any{"apiGroup": rbacv1.GroupName, "kind": role, "name": name},
		"subjects": []any{map[string]any{"kind": rbacv1.ServiceAccountKind, "namespace": g.To.Namespace, "name": g.To.Name}},
	}}
}

// policyRules are the grant's rules as the API server takes them.
func (g *Grant) policyRules() []any {
	list := make([]any, len(g.Rules))
	for i, r := range g.Rules {
		list[i] = r.ruleObject()
	}
	return list
}

func (r Rule) ruleObject() map[string]any {
	rule := map[string]any{"apiGroups": []any{r.Group}, "resources": []any{r.Resource}, "verbs": texts(r.Verbs)}
	if len(r.Names) > 0 {
		rule["resourceNames"] = texts(r.Names)
	}
	return rule
}

func texts(list []string) []any {
	out := make([]any, len(list))
	for i, text := range list {
		out[i] = text
	}
	return out
}

func metadataOf(namespace, name string) map[string]any {
	m := map[string]any{"name": name}
	if namespace != "" {
		m["namespace"] = namespace
	}
	return m
}
