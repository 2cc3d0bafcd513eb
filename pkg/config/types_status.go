package config

import (
	"fmt"

	"github.com/corollary-dev/corollary/pkg/fieldpath"
)

// Status says what is written into the upstream's status.
type Status struct {
	// Enabled is true (default), or false for kinds without a status of ours, such as Namespace or ConfigMap.
	Enabled *bool `json:"enabled,omitempty"`
	// Conditions are the names of the condition types that are written.
	Conditions Conditions `json:"conditions,omitempty"`
	// Downstreams is the path below .status of a list with each downstream's identifiers, such as .status.downstreams.
	// Default: not written.
	Downstreams string `json:"downstreams,omitempty" form:"statusPath"`
	// Fields are other values to write.
	Fields []StatusField `json:"fields,omitempty"`
}

// Conditions maps Corollary's conditions to the condition types that are written. One without a name is not written;
// ready is required if status is enabled.
type Conditions struct {
	// Ready is the condition type for: every wanted downstream is ready.
	Ready string `json:"ready,omitempty" form:"condition"`
	// Valid is the condition type for: the upstream passes the rules.
	Valid string `json:"valid,omitempty" form:"condition"`
	// Reconciling is the condition type for: the operator is working on it.
	Reconciling string `json:"reconciling,omitempty" form:"condition"`
	// Stalled is the condition type for: someone must act before the operator can continue.
	Stalled string `json:"stalled,omitempty" form:"condition"`
}

// StatusField is one value of the upstream's status.
type StatusField struct {
	// Path is where the value is written: keys below .status, such as .status.replicas.
	Path string `json:"path" form:"statusPath"`
	// Value is a CEL expression over self and downstreams.
	Value string `json:"value" holds:"cel"`
}

// Named is one of the conditions with the type that the config gives it.
type Named struct{ Key, ConditionType string }

// All are the condition types, by their keys in the config.
func (c Conditions) All() []Named {
	return []Named{{"ready", c.Ready}, {"valid", c.Valid}, {"reconciling", c.Reconciling}, {"stalled", c.Stalled}}
}

// StatusPath is a place in the upstream's status that the config has written.
type StatusPath struct {
	At   string
	Path fieldpath.Path
}

// By says who writes the path, for an error about another that overlaps it.
func (s StatusPath) By() string {
	if s.At == "" {
		return ", which is written in any case"
	}
	return " of " + s.At
}

// Paths returns the paths that parse, in the order of the config.
func (s *Status) Paths() []StatusPath {
	var out []StatusPath
	take := func(at, text string) {
		if p, err := fieldpath.Parse(text); text != "" && err == nil {
			out = append(out, StatusPath{at, p})
		}
	}
	take("status.downstreams", s.Downstreams)
	for i, f := range s.Fields {
		take(fmt.Sprintf("status.fields[%d].path", i), f.Path)
	}
	return out
}
