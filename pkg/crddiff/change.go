package crddiff

import (
	"cmp"
	"fmt"
	"strings"
)

// Level says how much a change asks for. The higher one decides about a whole diff.
type Level int

// The levels of a change.
const (
	// Compatible: every object that was valid is valid, and no client notices.
	Compatible Level = iota
	// Conversion: as it is, values get lost or mean something else; in a version of its own, with a conversion, they do
	// not.
	Conversion
	// Breaking: objects or clients that worked are refused, or stored values are lost as their objects are written.
	Breaking
)

var levels = []string{"compatible", "conversion", "breaking"}

func (l Level) String() string { return levels[l] }

// MarshalText writes the level as a word.
func (l Level) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// Change is one difference between two states of a CustomResourceDefinition.
type Change struct {
	CRD string `json:"crd,omitempty"`
	// Config is the place in a config, FILE:LINE, that reads what goes away. Then CRD is empty.
	Config string `json:"config,omitempty"`
	// Version is the version whose schema has changed; empty for the definition as a whole.
	Version string `json:"version,omitempty"`
	// Path is a field of the objects, or of the definition.
	Path  string `json:"path"`
	Level Level  `json:"level"`
	// Reason says what has changed and what comes of it, Fix what to do.
	Reason string `json:"reason"`
	Fix    string `json:"fix,omitempty"`
	// Ratcheted: the API server (1.30 and later) accepts an update of an object that leaves the value as it is.
	Ratcheted bool `json:"ratcheted,omitempty"`
	// Rollback says what is lost or refused where the old definition is applied again; empty where nothing is.
	Rollback string `json:"rollback,omitempty"`
}

// String is the change as a line without its fix.
func (c Change) String() string {
	return fmt.Sprintf("%s: %s: %s", cmp.Or(c.Config, strings.TrimSpace(c.CRD+" "+c.Version)), c.Path, c.Reason)
}
