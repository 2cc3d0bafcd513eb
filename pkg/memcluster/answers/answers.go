// Package answers writes what the API server in memory answers: objects, lists, and errors as a Status.
package answers

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// AsJSON is the media type of answers.
const AsJSON = "application/json"

// Unsupported returns the error for a request that the in-memory cluster does not support.
func Unsupported(what string) error {
	return Refusal(http.StatusNotImplemented, metav1.StatusReasonMethodNotAllowed,
		"the cluster in memory does not support "+what, nil)
}

// Refusal is an error as the API server answers with it.
func Refusal(code int32, reason metav1.StatusReason, message string, details *metav1.StatusDetails) error {
	return &apierrors.StatusError{
		ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason,
			Message: message, Details: details},
	}
}

// MediaTypeRefused refuses a body that is in none of the accepted media types.
func MediaTypeRefused(accepted string) error {
	return Refusal(http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType,
		"the body of the request was in an unknown format - accepted media types include: "+accepted, nil)
}

// StatusOf returns the Status of an API server for an error: 500 without a reason for any that is not an APIStatus.
func StatusOf(err error) metav1.Status {
	status := metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: err.Error()}
	var known apierrors.APIStatus
	if errors.As(err, &known) {
		status = known.Status()
	}
	status.APIVersion, status.Kind = "v1", "Status"
	return status
}

// Failure is the response that says an error.
func Failure(request *http.Request, err error) *http.Response {
	status := StatusOf(err)
	answer := Response(request, int(status.Code), AsJSON, Encode(status))
	if status.Details != nil && status.Details.RetryAfterSeconds > 0 {
		answer.Header.Set("Retry-After", strconv.Itoa(int(status.Details.RetryAfterSeconds)))
	}
	return answer
}

// Response is a response with a body.
func Response(request *http.Request, code int, contentType string, body []byte) *http.Response {
	return &http.Response{
		Status: strconv.Itoa(code) + " " + http.StatusText(code), StatusCode: code, Proto: "HTTP/1.1",
		ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {contentType}}, ContentLength: int64(len(body)),
		Body:    io.NopCloser(bytes.NewReader(body)),
		Request: request,
	}
}

// Encode encodes values from JSON or types of the Kubernetes API: neither can fail.
func Encode(v any) []byte {
	if u, ok := v.(*unstructured.Unstructured); ok {
		v = u.Object
	}
	out, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("encoding an answer: %v", err))
	}
	return out
}

// List is the response to a list.
type List struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        ListMeta         `json:"metadata"`
	Items           []map[string]any `json:"items"`
}

// ListMeta is metav1.ListMeta; lists of custom resources have continue even if it is empty.
type ListMeta struct {
	ResourceVersion    string  `json:"resourceVersion"`
	Continue           *string `json:"continue,omitempty"`
	RemainingItemCount *int64  `json:"remainingItemCount,omitempty"`
}

// InRequestedForm returns the whole response, or only its metadata if the client accepts only that.
func InRequestedForm(request *http.Request, answer any) any {
	if !MetadataOnly(request) {
		return answer
	}
	switch answer := answer.(type) {
	case *unstructured.Unstructured:
		return MetadataOf(answer.Object)
	case *List:
		out := &List{
			TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadataList"},
			Metadata: answer.Metadata,
			Items:    []map[string]any{},
		}
		if next := answer.Metadata.Continue; next != nil && *next == "" {
			out.Metadata.Continue = nil
		}
		for _, item := range answer.Items {
			out.Items = append(out.Items, MetadataOf(item))
		}
		return out
	}
	return answer
}

// MetadataOnly reports whether a request asks for the metadata of objects alone.
func MetadataOnly(request *http.Request) bool {
	return strings.Contains(request.Header.Get("Accept"), ";as=PartialObjectMetadata")
}

// MetadataOf is an object as such a request gets it; a Status as it is.
func MetadataOf(object map[string]any) map[string]any {
	if object["kind"] == "Status" {
		return object
	}
	return map[string]any{"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": object["metadata"]}
}
