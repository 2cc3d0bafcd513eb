//go:build controlplane

package engine_test

import (
	"fmt"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// TestAdmissionIsNotOpposedForever is TestNothingIsWrittenForever for what admission changes in every request.
func TestAdmissionIsNotOpposedForever(t *testing.T) {
	t.Parallel()
	for _, l := range []loop{
		{name: "hash-at-admission", reason: "admission changes the hash in every request", silent: true, before: anotherHash, says: []string{"admission", "/hash"}},
		{name: "hash-at-admission-with-status", reason: "admission changes the hash in every request", inStatus: true, before: anotherHash, says: []string{"admission", "/hash"}},
	} {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			l.check(t)
		})
	}
}

// anotherHash has admission give ConfigMaps in the namespace another hash, whatever they are written with.
func anotherHash(o opponent) {
	key := o.name + ".example.com/hash"
	pointer := "/metadata/annotations/" + strings.ReplaceAll(key, "/", "~1")
	testkit.Webhook(o.t, o.ns, "Mutating", "CREATE, UPDATE", "configmaps", func(r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		response := &admissionv1.AdmissionResponse{Allowed: true}
		object := &unstructured.Unstructured{}
		if object.UnmarshalJSON(r.Object.Raw) == nil && object.GetAnnotations()[key] != "" {
			patch := admissionv1.PatchTypeJSONPatch
			response.PatchType, response.Patch = &patch, []byte(fmt.Sprintf(`[{"op": "replace", "path": %q, "value": "theirs"}]`, pointer))
		}
		return response
	})
	probe := fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: probe, annotations: {%s: mine}}}", key)
	testkit.Eventually(o.t, patience, func() (bool, string) {
		have := testkit.Apply(o.t, o.ns, probe).GetAnnotations()[key]
		return have == "theirs", "admission leaves the hash at " + have
	})
}
