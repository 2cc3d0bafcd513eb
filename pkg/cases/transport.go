package cases

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/memcluster"
	"github.com/corollary-dev/corollary/pkg/operator"
)

// transport sends requests to the in-memory cluster.
type transport struct {
	cluster *memcluster.Cluster
	// immutable are the paths of objects that cannot be changed, except for metadata and status.
	immutable map[string]bool
	// written are the paths of objects that were written.
	written map[string]bool
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method == http.MethodPatch && t.immutable[request.URL.Path] {
		refusal, err := t.refusal(request)
		if refusal != nil || err != nil {
			return refusal, err
		}
	}
	response, err := t.cluster.RoundTrip(request)
	if err == nil && response.StatusCode < 300 && request.Method != http.MethodGet && !request.URL.Query().Has("dryRun") {
		t.written[request.URL.Path] = true
	}
	return response, err
}

// pathOf returns the path of requests for an object.
func pathOf(kind *kinds.Kind, at operator.Ref) string {
	path := "/apis/" + kind.GVR.Group + "/" + kind.GVR.Version
	if kind.GVR.Group == "" {
		path = "/api/" + kind.GVR.Version
	}
	if kind.Namespaced {
		path += "/namespaces/" + at.Namespace
	}
	return path + "/" + kind.GVR.Resource + "/" + at.Name
}

// refusal returns the response of an API server if the request would change an immutable object; nil if it would not.
func (t *transport) refusal(request *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return nil, err
	}
	request.Body = io.NopCloser(bytes.NewReader(body))
	before, err := t.ask(request, http.MethodGet, nil, "")
	if err != nil {
		return nil, err
	}
	after, err := t.ask(request, http.MethodPatch, body, "dryRun=All&"+request.URL.RawQuery)
	if err != nil || before.GetKind() == "Status" || after.GetKind() == "Status" ||
		equal(withoutMetadataAndStatus(before), withoutMetadataAndStatus(after)) {
		return nil, err // the cluster returns the error
	}
	message := before.GetKind() + " \"" + before.GetName() + "\" is invalid: spec: Invalid value: field is immutable"
	refused, err := json.Marshal(metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
		Code:   http.StatusUnprocessableEntity,
		Reason: metav1.StatusReasonInvalid, Message: message,
		Details: &metav1.StatusDetails{Name: before.GetName(), Kind: before.GetKind(),
			Causes: []metav1.StatusCause{{Type: metav1.CauseTypeFieldValueInvalid, Field: "spec",
				Message: "field is immutable"}}},
	})
	return &http.Response{StatusCode: http.StatusUnprocessableEntity, Request: request,
		Header: http.Header{"Content-Type": {"application/json"}},
		Body:   io.NopCloser(bytes.NewReader(refused)), ContentLength: int64(len(refused)),
	}, err
}

// ask sends a request similar to another one, and returns the object in the response.
func (t *transport) ask(
	like *http.Request, method string, body []byte, query string,
) (*unstructured.Unstructured, error) {
	request := like.Clone(like.Context())
	request.Method, request.URL.RawQuery, request.Body = method, query, io.NopCloser(bytes.NewReader(body))
	response, err := t.cluster.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	u := &unstructured.Unstructured{}
	return u, json.NewDecoder(response.Body).Decode(&u.Object)
}

// withoutMetadataAndStatus returns an object without metadata and status.
func withoutMetadataAndStatus(u *unstructured.Unstructured) map[string]any {
	out := make(map[string]any, len(u.Object))
	for key, value := range u.Object {
		if key != "metadata" && key != "status" {
			out[key] = value
		}
	}
	return out
}
