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

// InvalidFields lists the fields that the API server's own validation refuses, as it calls them, which is not always their
// name. It is nil for every other refusal, such as one by admission (a policy, a webhook, a quota): that says nothing about
// a field, whatever causes it has.
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

// InvalidCauses lists why the API server's own validation refuses a document, by field and without its texts; nil for every
// other refusal.
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
				c.Field = "status." + c.Field // older API servers name a place below the status from there
			}
			causes = append(causes, metav1.StatusCause{Type: c.Type, Field: c.Field})
		}
	}
	return causes
}

// causesOfFields leaves out what is about no field: the API server calls it "<nil>" where it says that, because of the others, it has
// not asked all rules of a CRD.
func causesOfFields(causes []metav1.StatusCause) []metav1.StatusCause {
	return slices.DeleteFunc(slices.Clone(causes), func(c metav1.StatusCause) bool { return c.Field == "<nil>" })
}

// validated reports whether the validation of a kind gave this answer. A policy's has no typed cause. A webhook can put
// any causes into its own, but its message begins with the webhook's name, which the API server puts there.
func validated(s metav1.Status) bool {
	if s.Reason != metav1.StatusReasonInvalid || s.Code != http.StatusUnprocessableEntity || s.Details == nil {
		return false
	}
	gk := schema.GroupKind{Group: s.Details.Group, Kind: s.Details.Kind}
	begins := strings.TrimSuffix(apierrors.NewInvalid(gk, s.Details.Name, nil).Error(), ".")
	return strings.HasPrefix(s.Message, begins+": ")
}
