package memory

import (
	"k8s.io/apimachinery/pkg/types"
)

// Witness says that the object of a uid at a place is the upstream's own: the status records it, or this process has
// made it or found it to be its own. It holds although someone has removed the object's owner marks.
type Witness struct {
	Place
	UID types.UID
	// Since is the change of the desired state since which it is at no target; 0 if it is at one, or that is not known.
	Since int
	// Guessed means that only the kind of its downstream is known, not which one of several it is.
	Guessed bool
}

// IsOf reports whether a witness is about the object of a uid.
func IsOf(uid types.UID) func(Witness) bool {
	return func(w Witness) bool { return w.UID == uid }
}
