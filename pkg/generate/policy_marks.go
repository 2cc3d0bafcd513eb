package generate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/operator/compile"
	"github.com/corollary-dev/corollary/pkg/operator/desired"
)

// MarksOptions say who may write the marks of an operator.
type MarksOptions struct {
	// Prefix is the beginning of the policy's name.
	Prefix string
	// Accounts are the ServiceAccounts that the operator works as.
	Accounts []Identity
	// Users are the names of others who may, such as a tool that restores backups.
	Users []string
	// Siblings are the ServiceAccounts of other operators of the same upstream kind: they, too, may make upstreams the
	// owners of objects with other labels.
	Siblings []Identity
}

// MarksPolicy is the policy by which nobody but the operator writes the marks that make an object its own: owner
// annotation, hash, the constant labels together, and references to its upstreams as owners. It concerns the kinds of
// the downstreams alone: who has the right may still create such an object without marks, and edit everything else of
// one that is there. Deleting is not restricted.
//
// Kubernetes' own controllers are let through: the garbage collector takes owner references away, and others copy
// labels and annotations from what owns an object.
func MarksPolicy(p *compile.Pipeline, o MarksOptions) (*AdmissionPolicy, error) {
	a := &AdmissionPolicy{}
	m := marks{p: p, conventions: &p.Config.Conventions, siblings: accountNames(o.Siblings)}
	spec := admissionv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: &admissionv1.MatchResources{},
		MatchConditions: []admissionv1.MatchCondition{
			{Name: "others-than-the-operator", Expression: "!(request.userInfo.username in " + celList(o.users()) + ")"},
			{Name: "others-than-kubernetes", Expression: `request.userInfo.username != "system:kube-controller-manager" && ` +
				`!("system:serviceaccounts:kube-system" in request.userInfo.?groups.orValue([]))`},
		},
		Variables: []admissionv1.Variable{
			{Name: "before", Expression: `request.operation == "CREATE" ? dyn({}) : oldObject.metadata`},
			{Name: "after", Expression: "object.metadata"},
		},
	}
	var names []string
	for _, d := range m.oneOfEach() {
		kind := a.kind(&d.Kind)
		spec.MatchConstraints.ResourceRules = append(spec.MatchConstraints.ResourceRules, onWrites(kind, doors(kind)...))
		names = append(names, kind.GVK.Kind)
	}
	m.add(&spec)
	purpose := fmt.Sprintf("Lets only operator %s mark objects of kind %s as its own.", p.Name, strings.Join(names, ", "))
	return a, a.add(o.Prefix+p.Name+"-marks", purpose, spec, matching(inNamespaces(m.namespaces(), nil), nil))
}

// doors are the resources by which metadata of a kind is written: with built-in kinds, that goes by way of the status,
// of namespaces/finalize, of certificatesigningrequests/approval, and, for Pods, by what binds them to a node.
func doors(k *kinds.Kind) []string {
	all := []string{k.GVR.Resource, k.GVR.Resource + "/*"}
	if k.GVK.Group == "" && k.GVK.Kind == "Pod" {
		all = append(all, "bindings")
	}
	return all
}

// users are the names of all who may write marks.
func (o MarksOptions) users() []string {
	return append(accountNames(o.Accounts), o.Users...)
}

// accountNames are the names of ServiceAccounts as users.
func accountNames(list []Identity) []string {
	var names []string
	for _, i := range list {
		names = append(names, "system:serviceaccount:"+i.Namespace+":"+i.Name)
	}
	return names
}

// marks are what makes an object an operator's own.
type marks struct {
	p           *compile.Pipeline
	conventions *config.Conventions
	siblings    []string
}

// objects are the downstreams and the object of deletion.before.
func (m marks) objects() []*desired.Downstream {
	all := slices.Clone(m.p.Downstreams)
	if m.p.Before != nil {
		all = append(all, m.p.Before.Object)
	}
	return all
}

// oneOfEach are the objects, the first of each kind.
func (m marks) oneOfEach() []*desired.Downstream {
	var first []*desired.Downstream
	for _, d := range m.objects() {
		if !slices.ContainsFunc(first, func(other *desired.Downstream) bool { return other.Kind.GVK == d.Kind.GVK }) {
			first = append(first, d)
		}
	}
	return first
}

// namespaces are those in which objects may stand; none: all of them, as where Namespaces are made.
func (m marks) namespaces() []string {
	var names []string
	for _, d := range m.objects() {
		t := d.Config.TargetNamespaces
		switch {
		case isNamespace(&d.Kind):
			return nil
		case t.From == config.NamespacesList:
			names = append(names, t.Names...)
		case t.From == config.NamespacesSame && len(m.p.Config.Watch.Namespaces) > 0:
			names = append(names, m.p.Config.Watch.Namespaces...)
		default:
			return nil
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// add adds a validation for each mark: it is after the request what it was before.
func (m marks) add(spec *admissionv1.ValidatingAdmissionPolicySpec) {
	refuse := func(expression, format string, args ...any) {
		spec.Validations = append(spec.Validations, admissionv1.Validation{Expression: expression,
			Message: "only operator " + m.p.Name + " may set, change or remove " + fmt.Sprintf(format, args...)})
	}
	same := func(part, key string) string {
		return fmt.Sprintf("variables.after[?%[1]q][?%[2]q] == variables.before[?%[1]q][?%[2]q]", part, key)
	}
	for _, key := range m.annotations() {
		refuse(same("annotations", key), "annotation %s", key)
	}
	for _, key := range m.labels() {
		refuse(same("labels", key), "label %s", key)
	}
	if selector := m.p.Downstreams[0].Selector; len(selector) > 0 {
		labeled := func(side string) string {
			var all []string
			for _, key := range slices.Sorted(maps.Keys(selector)) {
				all = append(all, fmt.Sprintf("variables.%s[?\"labels\"][?%q] == optional.of(%q)", side, key, selector[key]))
			}
			return strings.Join(all, " && ")
		}
		spec.Variables = append(spec.Variables,
			admissionv1.Variable{Name: "labeledBefore", Expression: labeled("before")},
			admissionv1.Variable{Name: "labeledAfter", Expression: labeled("after")})
		refuse("variables.labeledAfter == variables.labeledBefore", "label %s",
			strings.ReplaceAll(selector.String(), ",", ", "))
	}
	if r := m.conventions.Owner.Reference; r == nil || *r {
		m.references(spec, refuse)
	}
}

// references reserves the owner references: on what has the constant labels all those to an upstream, else those by
// which an upstream would control the object.
func (m marks) references(
	spec *admissionv1.ValidatingAdmissionPolicySpec, refuse func(expression, format string, args ...any),
) {
	up := m.p.Upstream.GVK
	ours := ""
	if len(m.p.Downstreams[0].Selector) > 0 {
		controls := "r.?controller.orValue(false)"
		if len(m.siblings) > 0 {
			controls += " && !(request.userInfo.username in " + celList(m.siblings) + ")"
		}
		ours = " && (variables.labeledBefore || variables.labeledAfter || " + controls + ")"
	}
	owners := func(side string) string {
		return fmt.Sprintf("variables.%s.?ownerReferences.orValue([]).filter(r, r.kind == %q && %s%s)", side,
			up.Kind, inGroup(up.GroupKind()),
			ours)
	}
	spec.Variables = append(spec.Variables,
		admissionv1.Variable{Name: "ownersBefore", Expression: owners("before")},
		admissionv1.Variable{Name: "ownersAfter", Expression: owners("after")})
	refuse("variables.ownersAfter == variables.ownersBefore", "an owner reference to kind %s", up.Kind)
}

// inGroup is CEL that holds where the owner reference r is to an object of a kind's group.
func inGroup(gk schema.GroupKind) string {
	if gk.Group == "" {
		return `!r.apiVersion.contains("/")`
	}
	return fmt.Sprintf("r.apiVersion.startsWith(%q)", gk.Group+"/")
}

// annotations are the keys of annotations that are marks, or were under the names before.
func (m marks) annotations() []string {
	c := m.conventions
	keys := []string{c.Owner.Annotation, c.Hash.Annotation}
	if before := c.Previous; before != nil {
		if before.Owner != nil {
			keys = append(keys, before.Owner.Annotation)
		}
		if before.Hash != nil {
			keys = append(keys, before.Hash.Annotation)
		}
	}
	return present(keys)
}

// labels are the keys of labels that are marks by themselves.
func (m marks) labels() []string {
	keys := []string{m.conventions.Hash.Label}
	if before := m.conventions.Previous; before != nil && before.Hash != nil {
		keys = append(keys, before.Hash.Label)
	}
	return present(keys)
}

// present are the names that are not empty, each once.
func present(names []string) []string {
	var list []string
	for _, name := range names {
		if name != "" && !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	return list
}

// celList is CEL for a list of strings.
func celList(texts []string) string {
	quoted := make([]string, len(texts))
	for i, text := range texts {
		quoted[i] = fmt.Sprintf("%q", text)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}
