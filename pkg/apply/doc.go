// Package apply sends every request for a single object to the API server: one thin method for each kind of request, on
// client-go's dynamic client, and one classification of the API server's responses. It decides, remembers and retries
// nothing; its callers do.
//
// # What every write guarantees
//
// An object is never taken over by accident. The API server refuses a first write (Create) if an object of that name
// exists; every later one (Apply, Null, Delete, Release, the finalizers and the status) has the uid of its object, so
// that another object with the same name is left alone. (ApplyStatus describes the one case in which the API server
// ignores the uid.)
//
// The main resource is applied as a whole by one manager, in one request: a second apply by the same manager removes
// the fields that only the first one had. So finalizers and marks are changed by JSON patch, and the status has a
// request of its own.
//
// # Errors
//
// Every error of a request is an *Error. Callers use errors.Is with ErrExists, ErrGone, ErrReplaced and ErrConflict for
// decisions, and Classify for messages and metrics.
package apply
