// Package departures has what the watches have shown beside the objects of upstreams: which upstreams go and how they
// are deleted, which have lost the labels that the config selects by, which a changed config leaves behind or another
// process has, and how far the watches lag.
package departures
