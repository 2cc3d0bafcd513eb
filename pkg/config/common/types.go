// Package common has what every kind of config file has: metadata, and durations.
package common

// Metadata names an operator.
type Metadata struct {
	// Name is used in logs, metrics and events: a DNS label, unique among the loaded operators.
	Name string `json:"name" form:"dnsLabel"`
}
