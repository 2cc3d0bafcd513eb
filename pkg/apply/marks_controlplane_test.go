//go:build controlplane

package apply

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// TestFinalizerRights: the right on the finalizers subresource is not the required one.
func TestFinalizerRights(t *testing.T) {
	admin := setupFor(t, testkit.Config(t))
	made := admin.create(admin.target(configMaps, "a"), configMap)
	f := setupFor(t, testkit.User(t, "finalizer", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps/finalizers"},
		Verbs: []string{"patch", "update"}}))
	_, err := f.c.AddFinalizer(t.Context(), admin.target(configMaps, "a"), made, "example.com/hold")
	expectError(t, err, nil, ReasonForbidden)
	messageContains(t, err, "needs: patch configmaps in namespace "+admin.ns)
}
