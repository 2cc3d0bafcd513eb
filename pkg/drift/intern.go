package drift

import (
	"strings"
	"sync"
)

// interned holds the short strings that most objects repeat: kinds, versions, namespaces. It is bounded, for whoever may
// create objects chooses some of them; past the bound strings are merely not shared.
var interned = struct {
	sync.RWMutex
	known map[string]string
}{known: map[string]string{}}

const (
	maxInterned       = 4096
	maxInternedLength = 253
)

// intern returns a string equal to s that lies in no larger one and, mostly, is shared.
func intern(s string) string {
	if s == "" || len(s) > maxInternedLength {
		return strings.Clone(s)
	}
	interned.RLock()
	known, ok := interned.known[s]
	interned.RUnlock()
	if ok {
		return known
	}
	s = strings.Clone(s)
	interned.Lock()
	defer interned.Unlock()
	if known, ok := interned.known[s]; ok {
		return known
	}
	if len(interned.known) < maxInterned {
		interned.known[s] = s
	}
	return s
}
