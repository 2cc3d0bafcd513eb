// Package engine keeps a cluster as configs say: it watches upstreams and downstreams, queues what changed, gathers
// what is known, lets package pipeline decide, carries the decision out and reports.
//
// It decides nothing itself, and it trusts neither the upstream's status nor its own memory further than the live
// objects bear them out. It is the only package that watches.
package engine
