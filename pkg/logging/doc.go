// Package logging adds to logr what it lacks: the level of a warning, and the levels at which messages of client
// libraries belong.
package logging
