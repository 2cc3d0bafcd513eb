// Package act carries out what was decided for one object: it sends the requests, remembers what they returned, and reports what was done.
// It neither decides nor counts what failed, and does nothing about the upstream itself.
package act
