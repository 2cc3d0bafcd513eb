package status

// Reasons of conditions, apart from states of decisions and reasons of failed requests.
const (
	// ReasonReady: every wanted downstream exists and is ready.
	ReasonReady = "Ready"
	// ReasonStatusFieldRefused: as ReasonReady, but values of the status cannot be stored. The message names them.
	ReasonStatusFieldRefused = "StatusFieldRefused"
	// ReasonValid: every rule of the config holds.
	ReasonValid = "Valid"
	// ReasonInvalid: a rule of the config does not hold. Nothing is done until the upstream changes.
	ReasonInvalid = "Invalid"
	// ReasonProgressing: a downstream was applied and is not ready yet.
	ReasonProgressing = "Progressing"
	// ReasonFailed: a downstream has failed, according to its own status or to the config's rules.
	ReasonFailed = "Failed"
	// ReasonObserved: a downstream differs from its desired state and is not changed, because mode is Observe. The message
	// says what would change.
	ReasonObserved = "Observed"
	// ReasonDeleting: the upstream is being deleted and waits for its downstreams to be gone.
	ReasonDeleting = "Deleting"
	// ReasonNotSelected: the upstream, or its namespace, does not match the config's selectors any more. Its downstreams
	// are removed, and then it is left alone.
	ReasonNotSelected = "NotSelected"
)

// ReasonLeftover means that a changed config selects fewer upstreams, and not this one. Its downstreams stay as they
// are, unmanaged.
const ReasonLeftover = "Leftover"

// Recorded states of a downstream that is created once. It will not be recreated.
const (
	// StateFinished: it completed successfully.
	StateFinished = "Finished"
	// StateFailed: it failed.
	StateFailed = "Failed"
)
