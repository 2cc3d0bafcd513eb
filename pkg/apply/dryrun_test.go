package apply

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// TestDryRunUnsupported distinguishes a refusal because of a webhook with side effects from other refusals.
func TestDryRunUnsupported(t *testing.T) {
	for _, c := range []struct {
		reason string
		err    error
		want   bool
	}{
		{"as the API server words it", apierrors.NewBadRequest("admission webhook \"x.example.com\" does not support dry run"), true},
		{"wrapped", &Error{Err: apierrors.NewBadRequest("admission webhook \"x.example.com\" does not support dry run")}, true},
		{"another bad request", apierrors.NewBadRequest("name is required"), false},
		{"no answer at all", errors.New("admission webhook does not support dry run"), false},
	} {
		if got := DryRunUnsupported(c.err); got != c.want {
			t.Errorf("%s: %t", c.reason, got)
		}
	}
}
