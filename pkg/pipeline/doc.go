// Package pipeline is what a config means: Compile turns one config file into an immutable Pipeline (rules, templates
// and status expressions, compiled once), Wish says what one upstream asks for, and Decide says what is to be done
// about each of its downstreams, with the reason in words.
//
// Everything here is pure: no request, no clock, no randomness, nothing is mutated that was handed in. So every
// command that previews (render, check) and the one that acts (run) share this code, and what is previewed is what happens.
//
// It does not watch, queue, send or remember: that is package engine.
package pipeline
