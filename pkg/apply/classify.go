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

// Failure is an error in the words of conditions, events and metrics.
type Failure struct {
	Reason     string        // one of the constants of this package; "" where there was no error
	Message    string        // one line for the person who has to act
	RetryAfter time.Duration // how long the API server asks to wait; 0 where it does not say
}

// Persistent reports whether the same request will be refused again until somebody changes the document, the
// schema or the policy, so that a caller may begin with its longest delay. It is never a reason to give up.
func (f Failure) Persistent() bool {
	switch f.Reason {
	case ReasonRejected, ReasonSchemaMismatch, ReasonUnencodable, ReasonTooLarge, ReasonDenied, ReasonConflict:
		return true
	}
	return false
}

// Classify says why a request failed. It takes errors of this package and any others of client-go, wrapped or
// not; nil gives the zero Failure.
func Classify(err error) Failure {
	if err == nil {
		return Failure{}
	}
	f := Failure{Reason: reason(err), Message: err.Error()}
	if e := (*Error)(nil); !errors.As(err, &e) {
		f.Message = readable(err)
	}
	if s, ok := apierrors.SuggestsClientDelay(err); ok {
		f.RetryAfter = time.Duration(s) * time.Second
	}
	return f
}

// reason goes from what a caller has already found out, over the API server's answer, to the lack of one.
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
	return reasonSilence(err)
}

// reasonNotFound tells a missing object from a missing namespace, kind or subresource.
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

// reasonStatus goes by the reason of the API server's answer, and by the code where that says more.
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

// denied reports whether admission refused the object without naming a field of it, whichever code and reason a policy or
// webhook chose: a policy that chooses none says 422 Invalid. A field that a webhook names is a value to fix; 409 and 429 ask
// to come back.
func denied(s metav1.Status) bool {
	switch {
	case s.Code >= http.StatusInternalServerError, s.Code == http.StatusConflict, s.Code == http.StatusTooManyRequests:
		return false
	case s.Details != nil && slices.ContainsFunc(s.Details.Causes, func(c metav1.StatusCause) bool { return c.Field != "" }):
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

// reasonSilence classifies what did not come from the API server.
func reasonSilence(err error) string {
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
