// Package clusters proves that of two clusters only the active one writes: two operator processes work for a control
// plane each and share a lock, while faults are injected. What both API servers received is checked afterwards. It
// proves the same of processes of one cluster that share shards.
//
// It has tests only. The short form is part of make test; make chaos-clusters and make chaos-shards run hundreds of
// rounds.
package clusters
