package apply

import (
	"context"
	"errors"
	"net"
	"net/http"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// Failure is an error with the reason of conditions, events and metrics.
type Failure struct {
	Reason     string        // one of the constants of this package; "" if there is no error
	Message    string        // one line that says what to fix
	RetryAfter time.Duration // how long the API server asks to wait; 0 if it does not say
}

// Persistent reports whether the same request will be refused until the document, the schema or a policy changes, so
// that a caller may begin with its longest delay. A caller must still retry.
func (f Failure) Persistent() bool {
	switch f.Reason {
	case ReasonRejected, ReasonSchemaMismatch, ReasonUnencodable, ReasonTooLarge, ReasonDenied, ReasonConflict:
		return true
	}
	return false
}

// Classify returns why a request failed. It accepts errors of this package and of client-go, wrapped or not; nil gives
// the zero Failure.
func Classify(err error) Failure {
	if err == nil {
		return Failure{}
	}
	f := Failure{Reason: reason(err), Message: err.Error()}
	if e := (*Error)(nil); !errors.As(err, &e) {
		f.Message = oneLineText(err)
	}
	if s, ok := apierrors.SuggestsClientDelay(err); ok {
		f.RetryAfter = time.Duration(s) * time.Second
	}
	return f
}

// reason uses, in this order: what the caller has found out, the API server's response, the lack of one.
func reason(err error) string {
	for _, m := range []struct {
		meaning error
		reason  string
	}{
		{ErrExists, ReasonAlreadyExists},
		{ErrGone, ReasonNotFound},
		{ErrReplaced, ReasonReplaced},
		{ErrConflict, ReasonChanged},
		{ErrOwned, ReasonConflict},
		{context.Canceled, ReasonCanceled},
	} {
		if errors.Is(err, m.meaning) {
			return m.reason
		}
	}
	if s, ok := status(err); ok {
		switch {
		case denied(s):
			return ReasonDenied
		case s.Reason == metav1.StatusReasonNotFound:
			return reasonNotFound(err, s)
		}
		return reasonStatus(err, s)
	}
	return reasonWithoutResponse(err)
}

// reasonNotFound distinguishes a missing object from a missing namespace, kind or subresource.
func reasonNotFound(err error, s metav1.Status) string {
	var e *Error
	known := errors.As(err, &e)
	switch {
	case kindNotServed(err), known && e.op.sub != "":
		return ReasonKindNotServed
	case s.Details != nil && s.Details.Kind == "namespaces" && (!known || e.Target.GVR.Resource != "namespaces"):
		return ReasonNamespaceNotFound
	}
	return ReasonNotFound
}

// reasonStatus uses the reason of the API server's response, or the code if that is more specific.
func reasonStatus(err error, s metav1.Status) string {
	switch s.Reason {
	case metav1.StatusReasonUnauthorized:
		return ReasonUnauthorized
	case metav1.StatusReasonForbidden:
		return reasonForbidden(err, s)
	case metav1.StatusReasonAlreadyExists:
		return ReasonAlreadyExists
	case metav1.StatusReasonConflict:
		return ReasonChanged
	case metav1.StatusReasonInvalid, metav1.StatusReasonBadRequest:
		return ReasonRejected
	case metav1.StatusReasonRequestEntityTooLarge:
		return ReasonTooLarge
	case metav1.StatusReasonMethodNotAllowed, metav1.StatusReasonUnsupportedMediaType:
		return ReasonKindNotServed
	case metav1.StatusReasonTooManyRequests:
		return ReasonThrottled
	case metav1.StatusReasonServiceUnavailable, metav1.StatusReasonTimeout, metav1.StatusReasonServerTimeout:
		return ReasonUnavailable
	}
	return reasonCode(s)
}

// denied reports whether admission refused the object without a cause for a field, with any code and reason: a policy
// without a reason returns 422 Invalid. A field in a webhook's response is a value to fix; 409 and 429 ask for a retry.
func denied(s metav1.Status) bool {
	switch {
	case s.Code >= http.StatusInternalServerError, s.Code == http.StatusConflict, s.Code == http.StatusTooManyRequests:
		return false
	case s.Details != nil && slices.ContainsFunc(s.Details.Causes, func(c metav1.StatusCause) bool {
		return c.Field != ""
	}):
		return false
	}
	return byAdmission(s.Message)
}

func reasonCode(s metav1.Status) string {
	switch s.Code {
	case http.StatusTooManyRequests:
		return ReasonThrottled
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return ReasonUnavailable
	case http.StatusForbidden:
		return ReasonDenied
	}
	if s.Code < http.StatusInternalServerError {
		return ReasonUnknown
	}
	if r := reasonProse(s.Message); s.Reason == "" || s.Reason == metav1.StatusReasonUnknown {
		return r
	}
	return ReasonInternalError
}

func reasonForbidden(err error, s metav1.Status) string {
	switch {
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return ReasonNamespaceTerminating
	case lacksRight(s.Message):
		return ReasonForbidden
	}
	return ReasonDenied
}

// reasonWithoutResponse classifies errors that are not from the API server.
func reasonWithoutResponse(err error) string {
	var encode *EncodeError
	var network net.Error
	switch {
	case errors.As(err, &encode):
		return ReasonUnencodable
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network),
		utilnet.IsProbableEOF(err), utilnet.IsConnectionReset(err), utilnet.IsConnectionRefused(err):
		return ReasonUnavailable
	}
	return ReasonUnknown
}
