package generate

import (
	"fmt"
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/operator/compile"
)

// AdmissionPolicy is a ValidatingAdmissionPolicy, by which the API server refuses requests itself, and its binding.
type AdmissionPolicy struct {
	// Manifests are the policy and its binding; none where there is nothing to refuse.
	Manifests []Manifest
	// Notes are what a person should know, a sentence each: what was left out and why, and what was guessed.
	Notes []string
}

func (a *AdmissionPolicy) note(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(a.Notes, text) {
		a.Notes = append(a.Notes, text)
	}
}

// kind is what is known of a kind, or what it is taken for.
func (a *AdmissionPolicy) kind(k *kinds.Kind) *kinds.Kind {
	if !k.GVR.Empty() {
		return k
	}
	guess, note := guessed(k.GVK)
	a.note("%s", note)
	return guess
}

// add adds the policy and its binding, both of one name. Above the policy are its purpose and the notes made so far.
// What keeps a policy from being evaluated refuses the request: a rule that gives an error makes an object as invalid
// as one that is false.
func (a *AdmissionPolicy) add(name, purpose string, spec admissionv1.ValidatingAdmissionPolicySpec,
	match *admissionv1.MatchResources) error {
	equivalent, fail := admissionv1.Equivalent, admissionv1.Fail
	spec.MatchConstraints.MatchPolicy, spec.FailurePolicy = &equivalent, &fail
	policy, err := admissionObject("ValidatingAdmissionPolicy", name, &spec)
	if err != nil {
		return err
	}
	binding, err := admissionObject("ValidatingAdmissionPolicyBinding", name,
		&admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny}, MatchResources: match,
		})
	if err != nil {
		return err
	}
	comment := []string{purpose}
	for _, note := range a.Notes {
		comment = append(comment, "note: "+note)
	}
	a.Manifests = []Manifest{{Comment: comment, Object: policy}, {Object: binding}}
	return nil
}

// admissionObject is a cluster-scoped object of the API group of admission.
func admissionObject(kind, name string, spec any) (map[string]any, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(spec)
	if err != nil {
		return nil, fmt.Errorf("writing %s %s: %w", kind, name, err)
	}
	return map[string]any{
		"apiVersion": admissionv1.SchemeGroupVersion.String(), "kind": kind,
		"metadata": metadataOf("", name), "spec": content,
	}, nil
}

// onWrites matches what creates and updates objects of the resources of a kind.
func onWrites(k *kinds.Kind, resources ...string) admissionv1.NamedRuleWithOperations {
	return admissionv1.NamedRuleWithOperations{RuleWithOperations: admissionv1.RuleWithOperations{
		Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
		Rule: admissionv1.Rule{APIGroups: []string{k.GVR.Group},
			APIVersions: []string{k.GVR.Version}, Resources: resources},
	}}
}

// inNamespaces selects namespaces by their names, in addition to what a selector says; nil if that is everything.
func inNamespaces(names []string, also *metav1.LabelSelector) *metav1.LabelSelector {
	selector := also.DeepCopy()
	if len(names) > 0 {
		if selector == nil {
			selector = &metav1.LabelSelector{}
		}
		selector.MatchExpressions = append(selector.MatchExpressions, metav1.LabelSelectorRequirement{
			Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpIn, Values: names,
		})
	}
	return selector
}

// matching is what a binding is limited to; nil for everything that its policy is about.
func matching(namespaces, objects *metav1.LabelSelector) *admissionv1.MatchResources {
	if namespaces == nil && objects == nil {
		return nil
	}
	return &admissionv1.MatchResources{NamespaceSelector: namespaces, ObjectSelector: objects}
}

// isNamespace is for Namespaces, which the API server selects by their own labels, as if each were in itself.
func isNamespace(k *kinds.Kind) bool {
	return k.GVK.Group == "" && k.GVK.Kind == "Namespace"
}

// watched is what the binding of a policy about upstreams is limited to: those that the config watches. What has no
// namespace is watched wherever the config looks.
func watched(p *compile.Pipeline) *admissionv1.MatchResources {
	w := p.Config.Watch
	if isNamespace(&p.Upstream) {
		return matching(nil, w.LabelSelector)
	}
	return matching(inNamespaces(w.Namespaces, w.NamespaceSelector), w.LabelSelector)
}
