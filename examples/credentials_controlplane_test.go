//go:build controlplane

package examples_test

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// TestCredentials: what another operator says of its object is shown on. The test is that operator.
func TestCredentials(t *testing.T) {
	t.Parallel()
	ns, credentials := testkit.Namespace(t), platform("credentials")
	says := func(status, message string, generation func(now int64) int64) {
		t.Helper()
		setStatus(t, externalSecrets, ns, "storefront", func(u *unstructured.Unstructured) map[string]any {
			return map[string]any{
				"conditions":            []any{map[string]any{"type": "Ready", "status": status, "message": message}},
				"binding":               map[string]any{"name": at(u, ".spec.target.name")},
				"syncedResourceVersion": fmt.Sprintf("%d-0a1b2c", generation(u.GetGeneration())),
			}
		})
	}
	present := func(now int64) int64 { return now }
	previous := func(now int64) int64 { return now - 1 }

	runExample(t, "credentials")
	state(t, ns, "credentials")
	await(t, externalSecrets, ns, "storefront", fields{".spec.target.name": "storefront-credentials",
		".spec.data[secretKey=password].remoteRef.key": "shop/storefront/database", ".spec.data[secretKey=password].remoteRef.property": "password"})
	await(t, credentials, ns, "storefront", ready("False", "Progressing", "externalSecret: the ExternalSecret is not ready yet").
		with(fields{".status.message": "", ".status.secretName": ""}))

	says("False", "could not get secret data from provider", previous)
	await(t, credentials, ns, "storefront", ready("False", "Progressing", "externalSecret: could not get secret data from provider").
		with(fields{".status.message": "could not get secret data from provider"}))

	says("True", "secret synced", present)
	await(t, credentials, ns, "storefront", ready("True", "Ready", "").
		with(fields{".status.message": "secret synced", ".status.secretName": "storefront-credentials"}))

	testkit.Patch(t, credentials, ns, "storefront", "somebody", `{"spec":{"keys":["username","password","host"]}}`)
	await(t, externalSecrets, ns, "storefront", fields{".spec.data[secretKey=host].remoteRef.property": "host",
		".status.conditions[type=Ready].status": "True"})
	await(t, credentials, ns, "storefront", ready("False", "Progressing", "externalSecret: the ExternalSecret's latest change has not been synced yet"))
	says("True", "secret synced", previous)
	await(t, credentials, ns, "storefront", ready("False", "Progressing", "externalSecret: the ExternalSecret's latest change has not been synced yet"))
	says("True", "3 keys synced", present)
	await(t, credentials, ns, "storefront", ready("True", "Ready", "").with(fields{".status.message": "3 keys synced"}))

	testkit.Delete(t, credentials, ns, "storefront")
	gone(t, externalSecrets, ns, "storefront")
}
