// Package apply is every request that is made against the API server on one object: one method a request, thin,
// over client-go's dynamic client, and one classification of what the API server answers.
//
// It decides nothing, remembers nothing and retries nothing: which request is due, and when again, is its
// caller's affair. It watches and lists nothing either.
//
// # What every write holds to
//
// An object is never taken by accident. A first write (Create) is refused by the API server where an object of
// that name exists; every later one (Apply, Null, Delete, Release, the finalizers and the status) carries the
// uid of the very object it is for, so that another one that took its name in the meantime is left alone. (The one
// place where the API server pays no heed to it is told at ApplyStatus.)
//
// The main resource is applied whole by one manager name, in one request: a second apply by the same name drops
// the fields that only the first one had. That is why finalizers and marks come and go by JSON patch, and why
// the status has a request of its own.
//
// # Errors
//
// Every error of a request is an *Error. What the caller is to decide on is found with errors.Is: ErrExists,
// ErrGone, ErrReplaced, ErrConflict. Everything else is for people and for metrics: Classify.
package apply
