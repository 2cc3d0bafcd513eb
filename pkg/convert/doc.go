// Package convert converts custom resources between the versions of their kind, as a config declares it: each spoke to
// the hub and back. It compiles the rules against the schemas of both sides, and finds what no rule says anything
// about. It makes no requests.
package convert
