// Package status builds the status of upstreams: conditions from the state of the downstreams, merged with those of
// other writers, identifiers of downstreams, and what a kind's schema can store. It uses plain values only: no client,
// no config, no decision.
package status
