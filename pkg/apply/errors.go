package apply

import (
	"errors"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// meaningFor sets the meaning that follows from the response to a request for an existing object: 404 for the object
// (not for its namespace or kind) is ErrGone; 422 for the uid of the request is ErrReplaced. A 404 for a subresource
// has no meaning: the object or the subresource may be missing.
func (e *Error) meaningFor(t Target) *Error {
	switch {
	case objectNotFound(e.Err, t) && e.op.sub == "":
		return e.meaning(ErrGone)
	case uidRefused(e.Err):
		return e.meaning(ErrReplaced)
	}
	return e
}

// OwnsOnly reports whether err is ErrOwned, and other managers own no other field that the request would change than
// these.
func OwnsOnly(err error, fields []string) bool {
	s, ok := status(err)
	if !ok || !errors.Is(err, ErrOwned) || s.Details == nil {
		return false
	}
	return !slices.ContainsFunc(s.Details.Causes, func(c metav1.StatusCause) bool {
		return c.Type != metav1.CauseTypeFieldManagerConflict || !slices.Contains(fields, c.Field)
	})
}
