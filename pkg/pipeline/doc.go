// Package pipeline is what a config means: Compile turns one config file into an immutable Pipeline (rules, templates
// and status expressions, compiled once), Desired renders what one upstream asks for, and Decide says what to do about
// each of its downstreams, with the reason in words.
//
// Everything here is pure: no request, no clock, no randomness, and arguments are not mutated. Commands that preview
// (render, check) and the one that acts (run) share this code, so what is previewed is what happens.
//
// It does not watch, queue, send or remember: that is package engine.
package pipeline
