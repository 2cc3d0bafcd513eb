package apply

import (
	"cmp"
	"errors"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// status returns the API server's status in err, or false. It sorts the causes: the API server iterates over maps, and
// a message that changes with each response would be reported each time.
func status(err error) (metav1.Status, bool) {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return metav1.Status{}, false
	}
	s := answer.Status()
	if s.Details != nil && len(s.Details.Causes) > 1 {
		details := *s.Details
		details.Causes = slices.SortedFunc(slices.Values(details.Causes), func(a, b metav1.StatusCause) int {
			return cmp.Or(cmp.Compare(a.Field, b.Field), cmp.Compare(a.Message, b.Message), cmp.Compare(a.Type, b.Type))
		})
		s.Details = &details
	}
	return s, true
}

func code(err error) int {
	if err == nil {
		return http.StatusOK
	}
	s, _ := status(err)
	return int(s.Code)
}

// kindNotServed reports whether err is the 404 of a path without a handler. It has no status of the API server:
// client-go makes one with this cause.
func kindNotServed(err error) bool {
	return apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// isAbout reports whether err is about t. A write can fail because of another object, too: its namespace, or a quota.
// The API server has the resource in some responses and the kind in others, so the name decides, except for these two
// resources.
func isAbout(err error, t Target) bool {
	s, ok := status(err)
	if !ok || s.Details == nil {
		return ok
	}
	for _, other := range []string{"namespaces", "resourcequotas"} {
		if s.Details.Kind == other && t.GVR.Resource != other {
			return false
		}
	}
	return s.Details.Name == "" || s.Details.Name == t.Name
}

// objectNotFound reports whether err is a 404 for the object t itself.
func objectNotFound(err error, t Target) bool {
	s, _ := status(err)
	return apierrors.IsNotFound(err) && !kindNotServed(err) && !byAdmission(s.Message) && isAbout(err, t)
}

// uidRefused reports whether err is the 422 for another uid than the live object's.
func uidRefused(err error) bool {
	s, ok := status(err)
	if !ok || s.Reason != metav1.StatusReasonInvalid || s.Details == nil {
		return false
	}
	for _, c := range s.Details.Causes {
		if c.Field == "metadata.uid" {
			return true
		}
	}
	return false
}

// Impersonating reports whether the API server refused a request because its sender may not impersonate the user, not
// because meaningFor the rights of that user.
func Impersonating(err error) bool {
	s, ok := status(err)
	return ok && s.Reason == metav1.StatusReasonForbidden && impersonator.MatchString(s.Message)
}

// causesOfFields removes causes without a field, which have the field "<nil>": the API server adds one if it has
// skipped some rules of a CRD because of other errors.
func causesOfFields(causes []metav1.StatusCause) []metav1.StatusCause {
	return slices.DeleteFunc(slices.Clone(causes), func(c metav1.StatusCause) bool { return c.Field == "<nil>" })
}

// validated reports whether a response is from the validation of a kind. One of a policy has no typed cause. A webhook
// can set any causes, but its message begins with its name, which the API server adds.
func validated(s metav1.Status) bool {
	if s.Reason != metav1.StatusReasonInvalid || s.Code != http.StatusUnprocessableEntity || s.Details == nil {
		return false
	}
	gk := schema.GroupKind{Group: s.Details.Group, Kind: s.Details.Kind}
	begins := strings.TrimSuffix(apierrors.NewInvalid(gk, s.Details.Name, nil).Error(), ".")
	return strings.HasPrefix(s.Message, begins+": ")
}
