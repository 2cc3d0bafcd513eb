// Package status is about the upstream's status: which conditions follow from the state of the downstreams, how they are
// merged with those of other writers, how downstreams are identified there, and what a kind's schema can store of it.
//
// It knows plain values only: no client, no config, no decision.
package status
