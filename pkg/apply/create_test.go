package apply

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
)

// TestCreateConflict: a conflict with another cause does not mean that the object exists, and in both cases only one
// request is sent.
func TestCreateConflict(t *testing.T) {
	quota := schema.GroupResource{Resource: "resourcequotas"}
	cases := []struct {
		reason string
		answer error
		want   error
	}{
		{"the object itself", apierrors.NewConflict(deployments.GroupResource(), "web", errors.New("modified")), ErrExists},
		{"two that create at once: the store knows first", apierrors.NewAlreadyExists(deployments.GroupResource(), "web"), ErrExists},
		{"the quota that the namespace's writers count against", apierrors.NewConflict(quota, "limits", errors.New("modified")), nil},
	}
	for _, tc := range cases {
		t.Run(tc.reason, func(t *testing.T) {
			d := fake.NewSimpleDynamicClient(runtime.NewScheme())
			d.PrependReactor("*", "*", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, tc.answer })
			_, err := New(d, "operator").Create(t.Context(), web, map[string]any{})
			if errors.Is(err, ErrExists) != (tc.want != nil) {
				t.Errorf("the error is %v, want %v", err, tc.want)
			}
			if n := len(d.Actions()); n != 1 {
				t.Errorf("%d requests were made", n)
			}
		})
	}
}
