package apply

import (
	"errors"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// InvalidFields returns the fields that the API server's own validation refuses, by its names, which may differ from
// the real ones. It is nil for every other refusal, such as one by admission (a policy, a webhook, a quota), whose
// causes say nothing about a field.
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

// InvalidCauses returns why the API server's own validation refuses a document, by field and without texts; nil for
// every other refusal.
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
