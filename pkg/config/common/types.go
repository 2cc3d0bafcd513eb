// Package common has what every kind of config file has: metadata, and durations.
package common

// Metadata names an operator.
type Metadata struct {
	// Name is used in logs, metrics and events: a DNS label, unique among the loaded operators.
	Name string `json:"name" form:"dnsLabel"`
}

// Confirm names the key of a ConfigMap whose value is the digest of a confirmed change.
type Confirm struct {
	// Namespace of the ConfigMap.
	Namespace string `json:"namespace" form:"dnsLabel"`
	// ConfigMap is its name. `corollary confirm` creates it if it is missing.
	ConfigMap string `json:"configMap" form:"objectName"`
	// Key in its data.
	Key string `json:"key" form:"configMapKey"`
}
