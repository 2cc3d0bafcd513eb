package apply

// Reasons of failed requests, in conditions, events, metrics and logs. None is final: a right can be granted, a schema
// can change. Failure.Persistent reports which ones a retry alone will not fix.
const (
	// ReasonForbidden: the operator lacks a right; the message says which verb on which resource in which namespace.
	ReasonForbidden = "Forbidden"
	// ReasonDenied: the operator has the right, but admission (a quota, Pod Security, a policy, a webhook) refuses
	// this object.
	ReasonDenied = "Denied"
	// ReasonUnauthorized: the API server does not know the client: credentials are missing or have expired.
	ReasonUnauthorized = "Unauthorized"
	// ReasonNotFound: the object does not exist.
	ReasonNotFound = "NotFound"
	// ReasonNamespaceNotFound: the namespace of the object does not exist.
	ReasonNamespaceNotFound = "NamespaceNotFound"
	// ReasonNamespaceTerminating: the namespace is being deleted and accepts no new objects.
	ReasonNamespaceTerminating = "NamespaceTerminating"
	// ReasonKindNotServed: the API server has no such resource or subresource: a CRD is not installed, is being
	// removed, does not serve this version or has no status subresource.
	ReasonKindNotServed = "KindNotServed"
	// ReasonAlreadyExists: an object of that name exists, and may not be adopted.
	ReasonAlreadyExists = "AlreadyExists"
	// ReasonReplaced: the object was deleted and another one has its name.
	ReasonReplaced = "Replaced"
	// ReasonChanged: there was a concurrent write; nothing was written.
	ReasonChanged = "Changed"
	// ReasonConflict: other field managers own fields that ownership: Fields would change.
	ReasonConflict = "Conflict"
	// ReasonRejected: the API server's validation refuses a value: an invalid one, or a new one for an immutable field
	// (Client.Accepts distinguishes them).
	ReasonRejected = "Rejected"
	// ReasonSchemaMismatch: the document does not fit the kind's schema: an unknown field, a value of another type, a
	// duplicate list key.
	ReasonSchemaMismatch = "SchemaMismatch"
	// ReasonUnencodable: a value in the document cannot be sent unchanged, so nothing was sent.
	ReasonUnencodable = "Unencodable"
	// ReasonTooLarge: the object is larger than the API server or its store accepts.
	ReasonTooLarge = "TooLarge"
	// ReasonThrottled: the API server asks for fewer requests.
	ReasonThrottled = "Throttled"
	// ReasonUnavailable: no response, or one that asks for a retry.
	ReasonUnavailable = "Unavailable"
	// ReasonInternalError: an internal error of the API server, or of a webhook that it called.
	ReasonInternalError = "InternalError"
	// ReasonCanceled: this process canceled the request, for example at shutdown.
	ReasonCanceled = "Canceled"
	// ReasonUnknown: none of the above.
	ReasonUnknown = "Unknown"
)
