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

// Meanings of a response for the caller's next step; use errors.Is.
var (
	// ErrExists: a create-only apply found an object of that name. The caller must check who owns it.
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

// Error is a request that was refused or got no response.
type Error struct {
	Verb    string // as for Observer
	Target  Target
	Meaning error // ErrExists, ErrGone, ErrReplaced, ErrConflict, ErrOwned or nil
	Err     error // as client-go returned it: an apierrors.APIStatus if the API server responded

	op op
}

// Error returns on one line what was done to which object and why it failed.
func (e *Error) Error() string {
	return e.op.doing + " " + e.Target.String() + ": " + e.explain()
}

// Unwrap returns the meaning, for errors.Is, and the error of client-go, for errors.As.
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

// meaningFor sets the meaning that follows from the response to a request for an existing object: 404 for the object (not for its
// namespace or kind) is ErrGone; 422 for the uid of the request is ErrReplaced. A 404 for a subresource has no meaning: the
// object or the subresource may be missing.
func (e *Error) meaningFor(t Target) *Error {
	switch {
	case objectNotFound(e.Err, t) && e.op.sub == "":
		return e.meaning(ErrGone)
	case uidRefused(e.Err):
		return e.meaning(ErrReplaced)
	}
	return e
}

// explainConflict finds the meaning of a 409 for a request with a uid. The API server returns 409 if the object is gone, if the
// uid in the precondition differs, and for concurrent writes; only the text differs. A mistake would leave an object behind or
// report it as lost, so this reads the object.
func (c *Client) explainConflict(ctx context.Context, t Target, uid types.UID, e *Error) *Error {
	if e = e.meaningFor(t); e.Meaning != nil {
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

// OwnsOnly reports whether err is ErrOwned, and other managers own no other field that the request would change than these.
func OwnsOnly(err error, fields []string) bool {
	s, ok := status(err)
	if !ok || !errors.Is(err, ErrOwned) || s.Details == nil {
		return false
	}
	return !slices.ContainsFunc(s.Details.Causes, func(c metav1.StatusCause) bool {
		return c.Type != metav1.CauseTypeFieldManagerConflict || !slices.Contains(fields, c.Field)
	})
}

// status returns the API server's status in err, or false. It sorts the causes: the API server iterates over maps, and a
// message that changes with each response would be reported each time.
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
	return apierrors.IsNotFound(err) && !kindNotServed(err) && !byAdmission(s.Message) && isAbout(err, t)
}

// isAbout reports whether err is about t. A write can fail because of another object, too: its namespace, or a quota. The API
// server has the resource in some responses and the kind in others, so the name decides, except for these two resources.
func isAbout(err error, t Target) bool {
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

// kindNotServed reports whether err is the 404 of a path without a handler. It has no status of the API server: client-go makes
// one with this cause.
func kindNotServed(err error) bool {
	return apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// uidRefused reports whether err is the 422 for another uid than the live object's.
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
