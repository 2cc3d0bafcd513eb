package apply

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// InvalidFields returns the fields that the API server's own validation refuses, by its names, which may differ from the real
// ones. It is nil for every other refusal, such as one by admission (a policy, a webhook, a quota), whose causes say nothing
// about a field.
func InvalidFields(err error) []string {
	s, ok := status(err)
	if !ok || !validated(s) {
		return nil
	}
	var fields []string
	for _, c := range causesOfFields(s.Details.Causes) {
		if !strings.HasPrefix(string(c.Type), "FieldValue") || c.Field == "" {
			return nil
		}
		fields = append(fields, c.Field)
	}
	return fields
}

// InvalidCauses returns why the API server's own validation refuses a document, by field and without texts; nil for every other
// refusal.
func InvalidCauses(err error) []metav1.StatusCause {
	s, ok := status(err)
	if !ok || !validated(s) {
		return nil
	}
	var e *Error
	ofStatus := errors.As(err, &e) && e.op.sub == "status"
	var causes []metav1.StatusCause
	for _, c := range causesOfFields(s.Details.Causes) {
		if slices.Contains(causeTypes, c.Type) {
			if ofStatus && c.Field != "status" && !strings.HasPrefix(c.Field, "status.") {
				c.Field = "status." + c.Field // older API servers omit the prefix for fields of the status
			}
			causes = append(causes, metav1.StatusCause{Type: c.Type, Field: c.Field})
		}
	}
	return causes
}

// causesOfFields removes causes without a field, which have the field "<nil>": the API server adds one if it has skipped some
// rules of a CRD because of other errors.
func causesOfFields(causes []metav1.StatusCause) []metav1.StatusCause {
	return slices.DeleteFunc(slices.Clone(causes), func(c metav1.StatusCause) bool { return c.Field == "<nil>" })
}

// validated reports whether a response is from the validation of a kind. One of a policy has no typed cause. A webhook can set
// any causes, but its message begins with its name, which the API server adds.
func validated(s metav1.Status) bool {
	if s.Reason != metav1.StatusReasonInvalid || s.Code != http.StatusUnprocessableEntity || s.Details == nil {
		return false
	}
	gk := schema.GroupKind{Group: s.Details.Group, Kind: s.Details.Kind}
	begins := strings.TrimSuffix(apierrors.NewInvalid(gk, s.Details.Name, nil).Error(), ".")
	return strings.HasPrefix(s.Message, begins+": ")
}
