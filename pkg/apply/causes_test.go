package apply

import (
	"net/http"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestInvalidCauses: all versions of the API server give the same path of a refused field.
func TestInvalidCauses(t *testing.T) {
	message := `Widget.tools.example.com "web" is invalid: `
	refused := func(fields ...string) error {
		details := &metav1.StatusDetails{Group: "tools.example.com", Kind: "Widget", Name: "web"}
		for _, field := range fields {
			details.Causes = append(details.Causes, metav1.StatusCause{Type: metav1.CauseTypeFieldValueInvalid, Field: field})
		}
		return answer(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, message, details)
	}
	for _, test := range []struct {
		reason string
		err    error
		want   []string
	}{
		{"a newer API server", &Error{op: op{sub: "status"}, Err: refused("status.phase", "status")}, []string{"status", "status.phase"}},
		{"an older one", &Error{op: op{sub: "status"}, Err: refused("phase", "statuses[0]")}, []string{"status.phase", "status.statuses[0]"}},
		{"rules that were not asked", &Error{op: op{sub: "status"}, Err: refused("phase", "<nil>")}, []string{"status.phase"}},
		{"not the status", &Error{Err: refused("spec.phase")}, []string{"spec.phase"}},
	} {
		var got []string
		for _, c := range InvalidCauses(test.err) {
			got = append(got, c.Field)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: got %q, want %q", test.reason, got, test.want)
		}
	}
}
