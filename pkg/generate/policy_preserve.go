package generate

import (
	"fmt"
	"strconv"

	admissionv1 "k8s.io/api/admissionregistration/v1"

	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/kinds"
)

// PreservePolicy is the policy by which the API server refuses updates that drop the annotation of preserve from an
// object that has it, in any version: with it go fields that the version of the request does not have. Patches and
// applies keep it, and so does who sends back what was read. prefix is the beginning of the policy's name.
func PreservePolicy(f *load.ConversionFile, source kinds.Source, prefix string) (*AdmissionPolicy, error) {
	a := &AdmissionPolicy{}
	if f.Preserve == nil {
		return a, nil
	}
	gr, note, err := Converted(source, f)
	if err != nil {
		return nil, fmt.Errorf("deriving the policy of conversion %s: %w", f.Name, err)
	}
	if note != "" {
		a.note("%s", note)
	}
	versions := []string{f.Hub}
	for _, s := range f.Spokes {
		versions = append(versions, s.Version)
	}
	const says = "the object has fields that this version does not have, kept in %s %s, which is missing from the " +
		"update: it would lose them; " +
		"patch or apply the object, send it with the %[1]s as it was read, or use a version that has these fields"
	var validations []admissionv1.Validation
	// the label marks full annotations
	for _, at := range [][2]string{{"annotations", "annotation"}, {"labels", "label"}} {
		has := func(object string) string {
			return fmt.Sprintf("has(%s.metadata.%s) && %s in %[1]s.metadata.%[2]s", object, at[0],
				strconv.Quote(f.Preserve.Annotation))
		}
		validations = append(validations, admissionv1.Validation{
			Expression: fmt.Sprintf("!(%s) || (%s)", has("oldObject"), has("object")),
			Message:    fmt.Sprintf(says, at[1], f.Preserve.Annotation),
		})
	}
	update := admissionv1.NamedRuleWithOperations{RuleWithOperations: admissionv1.RuleWithOperations{
		Operations: []admissionv1.OperationType{admissionv1.Update},
		Rule:       admissionv1.Rule{APIGroups: []string{gr.Group}, APIVersions: versions, Resources: []string{gr.Resource}},
	}}
	spec := admissionv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{update}},
		MatchConditions: []admissionv1.MatchCondition{
			{Name: "not-being-deleted", Expression: "!has(oldObject.metadata.deletionTimestamp)"},
		},
		Validations: validations,
	}
	purpose := fmt.Sprintf("Refuses updates of %s that would lose what its conversion %s keeps in %s.", gr,
		f.Name, f.Preserve.Annotation)
	return a, a.add(prefix+f.Name+"-preserve", purpose, spec, nil)
}
