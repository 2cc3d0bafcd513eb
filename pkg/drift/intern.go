package drift

import (
	"strings"
	"sync"
)

// interned holds short strings that most objects have: kinds, versions, namespaces. It is bounded, because anyone who
// can create objects chooses some of them; further strings are just not shared.
var interned = struct {
	sync.RWMutex
	known map[string]string
}{known: map[string]string{}}

const (
	maxInterned       = 4096
	maxInternedLength = 253
)

// intern returns a string equal to s that is not part of a larger one and is usually shared.
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
