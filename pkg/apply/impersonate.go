package apply

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Impersonating reports whether the API server refused a request because whoever sent it may not act as the user that it
// named, rather than for what that user may do.
func Impersonating(err error) bool {
	s, ok := status(err)
	return ok && s.Reason == metav1.StatusReasonForbidden && impersonator.MatchString(s.Message)
}
