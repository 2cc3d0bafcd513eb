package testkit

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Webhook registers an admission webhook of a kind ("Validating", "Mutating") for operations such as "CREATE" and
// resources such as "jobs" in one namespace, until the test ends. answer gets the request; it must have no side
// effects, and its uid is set. It takes a moment until the webhook is called: use Eventually.
func Webhook(t testing.TB, namespace, kind, operation, resource string,
	answer func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse,
) {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.Request == nil {
			http.Error(w, "no review", http.StatusBadRequest)
			return
		}
		review.Response = answer(review.Request)
		review.Response.UID = review.Request.UID
		review.Request = nil
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(review)
	}))
	t.Cleanup(server.Close)
	bundle := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE",
		Bytes: server.Certificate().Raw}))
	name := Unique(t)
	made := Apply(t, "", fmt.Sprintf(`
apiVersion: admissionregistration.k8s.io/v1
kind: %sWebhookConfiguration
metadata: {name: %s}
webhooks:
- name: %s.example.com
  clientConfig: {url: %q, caBundle: %s}
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %s}}
  rules: [{apiGroups: ["*"], apiVersions: ["*"], operations: [%s], resources: [%s]}]
  sideEffects: None
  admissionReviewVersions: [v1]
`, kind, name, name, server.URL, bundle, namespace, operation, resource))
	t.Cleanup(func() { remove(t, made) })
}

// Policy makes a ValidatingAdmissionPolicy ("Validating") or a MutatingAdmissionPolicy ("Mutating") and binds it to one
// namespace, until the test ends or lift is called. spec is the rest of the policy's spec, in YAML. Both take effect
// after a moment.
func Policy(t testing.TB, namespace, kind, operation, group, resource, spec string) (lift func()) {
	t.Helper()
	name := Unique(t)
	actions := ", validationActions: [Deny]"
	if kind == "Mutating" {
		actions = ""
	}
	policy := Apply(t, "", fmt.Sprintf(`
apiVersion: admissionregistration.k8s.io/v1
kind: %sAdmissionPolicy
metadata: {name: %s}
spec:
  matchConstraints:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %s}}
    resourceRules: [{apiGroups: [%q], apiVersions: ["*"], operations: [%s], resources: [%s]}]
%s
`, kind, name, namespace, group, operation, resource, spec))
	t.Cleanup(func() { remove(t, policy) })
	binding := Apply(t, "", fmt.Sprintf(`
apiVersion: admissionregistration.k8s.io/v1
kind: %sAdmissionPolicyBinding
metadata: {name: %s}
spec: {policyName: %s%s}
`, kind, name, name, actions))
	t.Cleanup(func() { remove(t, binding) })
	return func() { remove(t, binding) }
}

// remove deletes a cluster-scoped object; the context of the test may have ended.
func remove(t testing.TB, object *unstructured.Unstructured) {
	if err := shared(t).typed.Delete(context.Background(), object); err != nil && !apierrors.IsNotFound(err) {
		t.Log(err)
	}
}
