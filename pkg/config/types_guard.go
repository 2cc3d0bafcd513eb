package config

import "github.com/corollary-dev/corollary/pkg/config/common"

// Guard holds a change that would delete or change many objects until it is confirmed: at a start, or after a change of
// the config, of inputs, or of a namespace's labels. A change of a single upstream never waits.
type Guard struct {
	// MaxDeleted is the percentage of existing downstreams that may be deleted without confirmation. Default: 10%; 100%:
	// no limit.
	MaxDeleted string `json:"maxDeleted,omitempty" form:"share"`
	// MaxChanged is the percentage that may be changed or deleted without confirmation. Default: no limit.
	MaxChanged string `json:"maxChanged,omitempty" form:"share"`
	// Minimum is the number of objects that never need confirmation. Default: 5.
	Minimum *int `json:"minimum,omitempty" min:"0"`
	// Confirm is where a confirmation is written, by `corollary confirm` or by hand.
	Confirm *common.Confirm `json:"confirm,omitempty"`
	// Confirmed is a confirmation in the config itself, for example by a reviewed commit: the digest that the waiting
	// operator reports. It is valid only for the change with that digest.
	Confirmed string `json:"confirmed,omitempty"`
}
