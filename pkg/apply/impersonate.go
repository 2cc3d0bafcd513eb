package apply

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Impersonating reports whether the API server refused a request because its sender may not impersonate the user, not because
// meaningFor the rights of that user.
func Impersonating(err error) bool {
	s, ok := status(err)
	return ok && s.Reason == metav1.StatusReasonForbidden && impersonator.MatchString(s.Message)
}
