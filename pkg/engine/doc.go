// Package engine runs the operators of all configs: it opens their watches, queues the upstreams that changed for
// package reconcile, and handles guard, reloads and handover between processes. It decides nothing about a single
// upstream.
package engine
