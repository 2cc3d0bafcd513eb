// Package desired renders what should exist: from an upstream, its inputs and its own objects, by the templates and
// expressions of a config that package compile has compiled, the documents of all its downstreams.
//
// It is pure: no request, no clock except for the time that an expression may take, no randomness, and arguments are
// not mutated.
package desired
