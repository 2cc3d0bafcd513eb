// Package departures has what the watches have shown of upstreams that go: how they are deleted, which have lost the labels that the
// config selects by, and which a changed config leaves behind.
package departures
