package status

// Reasons of conditions that do not come from a decision's state or a request's failure, which bring their own words.
const (
	// ReasonReady: every wanted downstream stands and is ready.
	ReasonReady = "Ready"
	// ReasonStatusFieldRefused: as ReasonReady, but values of the status cannot be stored. The message names them.
	ReasonStatusFieldRefused = "StatusFieldRefused"
	// ReasonValid: every rule of the config holds.
	ReasonValid = "Valid"
	// ReasonInvalid: a rule of the config does not hold. Nothing is done until the upstream changes.
	ReasonInvalid = "Invalid"
	// ReasonProgressing: a downstream was applied and is not ready yet.
	ReasonProgressing = "Progressing"
	// ReasonFailed: a downstream says of itself, or by the config's rules, that it has failed.
	ReasonFailed = "Failed"
	// ReasonObserved: a downstream is not what it shall be, and nothing is done about it, since mode is Observe. The message
	// says what would be.
	ReasonObserved = "Observed"
	// ReasonDeleting: the upstream is being deleted and waits for its downstreams to be gone.
	ReasonDeleting = "Deleting"
	// ReasonNotSelected: the upstream, or its namespace, has lost the labels that the config selects by. Its downstreams are
	// removed, and it is left alone.
	ReasonNotSelected = "NotSelected"
)

// States that are recorded of a downstream that is made once and finished. It is not made again.
const (
	// StateFinished: it finished well.
	StateFinished = "Finished"
	// StateFailed: it has failed.
	StateFailed = "Failed"
)
