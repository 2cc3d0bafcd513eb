package apply

// The reasons that a request can fail for, as they appear in conditions, events, metrics and logs. None is final:
// a right can be granted, a schema can change. Failure.Persistent tells which ones repetition alone will not fix.
const (
	// ReasonForbidden: the operator lacks a right; the message says which verb on which resource in which namespace.
	ReasonForbidden = "Forbidden"
	// ReasonDenied: the operator has the right, but admission (a quota, Pod Security, a policy, a webhook) refuses
	// this object.
	ReasonDenied = "Denied"
	// ReasonUnauthorized: the API server does not know who asks: credentials are missing or have expired.
	ReasonUnauthorized = "Unauthorized"
	// ReasonNotFound: the object does not exist (any more).
	ReasonNotFound = "NotFound"
	// ReasonNamespaceNotFound: the namespace that the object is for does not exist.
	ReasonNamespaceNotFound = "NamespaceNotFound"
	// ReasonNamespaceTerminating: the namespace is being deleted and takes no new objects.
	ReasonNamespaceTerminating = "NamespaceTerminating"
	// ReasonKindNotServed: the API server has no such resource or subresource: a CRD is not installed, is being
	// removed, does not serve this version or has no status subresource.
	ReasonKindNotServed = "KindNotServed"
	// ReasonAlreadyExists: an object of that name exists, and it was not to be taken.
	ReasonAlreadyExists = "AlreadyExists"
	// ReasonReplaced: the object was deleted and another one has its name.
	ReasonReplaced = "Replaced"
	// ReasonChanged: another writer came in between; nothing was written.
	ReasonChanged = "Changed"
	// ReasonConflict: other field managers own fields that ownership: Fields would change.
	ReasonConflict = "Conflict"
	// ReasonRejected: the API server validated the object and refuses a value: a bad one, or a new one for an
	// immutable field (Client.Accepts tells them apart).
	ReasonRejected = "Rejected"
	// ReasonSchemaMismatch: the document does not fit the kind's schema: an unknown field, a value of another type,
	// a list key given twice.
	ReasonSchemaMismatch = "SchemaMismatch"
	// ReasonUnencodable: a value in the document cannot be sent unchanged, so nothing was sent.
	ReasonUnencodable = "Unencodable"
	// ReasonTooLarge: the object is larger than the API server or its store takes.
	ReasonTooLarge = "TooLarge"
	// ReasonThrottled: the API server asks for fewer requests.
	ReasonThrottled = "Throttled"
	// ReasonUnavailable: no answer, or one that asks to come back later.
	ReasonUnavailable = "Unavailable"
	// ReasonInternalError: the API server, or a webhook that it called, went wrong.
	ReasonInternalError = "InternalError"
	// ReasonCanceled: this process gave the request up, as it does when it shuts down.
	ReasonCanceled = "Canceled"
	// ReasonUnknown: none of the above.
	ReasonUnknown = "Unknown"
)

// Reasons returns every reason, sorted, for documentation and for metrics that are to exist from the start.
func Reasons() []string {
	return []string{
		ReasonAlreadyExists, ReasonCanceled, ReasonChanged, ReasonConflict, ReasonDenied, ReasonForbidden, ReasonInternalError,
		ReasonKindNotServed, ReasonNamespaceNotFound, ReasonNamespaceTerminating, ReasonNotFound, ReasonRejected,
		ReasonReplaced, ReasonSchemaMismatch, ReasonThrottled, ReasonTooLarge, ReasonUnauthorized,
		ReasonUnavailable, ReasonUnencodable, ReasonUnknown,
	}
}
