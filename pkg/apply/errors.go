package apply

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// What an answer means for the caller's next step; found with errors.Is.
var (
	// ErrExists: a create-only apply met an object of that name. Whose it is has to be looked at.
	ErrExists = errors.New("an object of that name exists already")
	// ErrGone: the object that the request was for does not exist.
	ErrGone = errors.New("the object does not exist")
	// ErrReplaced: another object (another uid) has the name now. It was left alone.
	ErrReplaced = errors.New("another object has taken the name")
	// ErrConflict: the object changed since it was read. Nothing was written: read it again, then retry.
	ErrConflict = errors.New("the object has changed since it was read")
	// ErrOwned: other field managers own fields that the request would change. Nothing was written.
	ErrOwned = errors.New("other field managers own the fields")
)

// Error is a request that was refused or got no answer.
type Error struct {
	Verb    string // as Observer hears it
	Target  Target
	Meaning error // ErrExists, ErrGone, ErrReplaced, ErrConflict, ErrOwned or nil
	Err     error // as client-go returned it: an apierrors.APIStatus where the API server answered

	op op
}

// Error returns what was being done to what and why it went wrong, in one line of readable length.
func (e *Error) Error() string {
	return e.op.doing + " " + e.Target.String() + ": " + e.explain()
}

// Unwrap gives errors.Is the meaning and errors.As what client-go returned.
func (e *Error) Unwrap() []error {
	if e.Meaning == nil {
		return []error{e.Err}
	}
	return []error{e.Meaning, e.Err}
}

// meaning returns e with its meaning set.
func (e *Error) meaning(m error) *Error {
	e.Meaning = m
	return e
}

// of gives e the meanings that an answer to a request for an existing object has by itself: 404 for the object
// (and not for its namespace or its kind) is ErrGone; 422 for the uid that the request carried is ErrReplaced.
// A 404 from a subresource says neither: either the object or the subresource is missing.
func (e *Error) of(t Target) *Error {
	switch {
	case objectNotFound(e.Err, t) && e.op.sub == "":
		return e.meaning(ErrGone)
	case uidRefused(e.Err):
		return e.meaning(ErrReplaced)
	}
	return e
}

// explainConflict finds what the answer to a request that carried a uid means. The API server answers 409 alike where the
// object is gone, where the uid in a delete's precondition is another, and where writers got into each other's
// way; only its prose differs. Taking one for another would leave an object behind or report one as lost, so
// the object is looked at: one read more, in these rare cases alone.
func (c *Client) explainConflict(ctx context.Context, t Target, uid types.UID, e *Error) *Error {
	if e = e.of(t); e.Meaning != nil {
		return e
	}
	if apierrors.HasStatusCause(e.Err, metav1.CauseTypeFieldManagerConflict) {
		return e.meaning(ErrOwned)
	}
	conflict := apierrors.IsConflict(e.Err)
	if !conflict && !objectNotFound(e.Err, t) {
		return e
	}
	live, err := c.Get(ctx, t)
	switch {
	case errors.Is(err, ErrGone):
		return e.meaning(ErrGone)
	case err == nil && live.GetUID() != uid:
		return e.meaning(ErrReplaced)
	case conflict:
		return e.meaning(ErrConflict)
	}
	return e
}

// status returns what the API server said, false if none of it is in err. It has the causes in an order of their own: the
// API server walks maps to find them, and a message that changes from one answer to the next would be news each time.
func status(err error) (metav1.Status, bool) {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return metav1.Status{}, false
	}
	s := answer.Status()
	if s.Details != nil && len(s.Details.Causes) > 1 {
		details := *s.Details
		details.Causes = slices.SortedFunc(slices.Values(details.Causes), func(a, b metav1.StatusCause) int {
			return cmp.Or(cmp.Compare(a.Field, b.Field), cmp.Compare(a.Message, b.Message), cmp.Compare(a.Type, b.Type))
		})
		s.Details = &details
	}
	return s, true
}

func code(err error) int {
	if err == nil {
		return http.StatusOK
	}
	s, _ := status(err)
	return int(s.Code)
}

// objectNotFound reports whether err is a 404 for the object t itself.
func objectNotFound(err error, t Target) bool {
	s, _ := status(err)
	return apierrors.IsNotFound(err) && !kindNotServed(err) && !byAdmission(s.Message) && about(err, t)
}

// about reports whether err speaks of t. A write can fail for the sake of another object, too: its namespace,
// or a quota that several writers count against. The API server names the resource in some answers and the
// kind in others, so the name decides, and the two resources of which that is known.
func about(err error, t Target) bool {
	s, ok := status(err)
	if !ok || s.Details == nil {
		return ok
	}
	for _, other := range []string{"namespaces", "resourcequotas"} {
		if s.Details.Kind == other && t.GVR.Resource != other {
			return false
		}
	}
	return s.Details.Name == "" || s.Details.Name == t.Name
}

// kindNotServed reports whether err is the 404 of a path that the API server has no handler for. It is no
// status of the API server: client-go makes one of it and marks it with this cause.
func kindNotServed(err error) bool {
	return apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// uidRefused reports whether err is the 422 for a uid that is not the live object's.
func uidRefused(err error) bool {
	s, ok := status(err)
	if !ok || s.Reason != metav1.StatusReasonInvalid || s.Details == nil {
		return false
	}
	for _, c := range s.Details.Causes {
		if c.Field == "metadata.uid" {
			return true
		}
	}
	return false
}
