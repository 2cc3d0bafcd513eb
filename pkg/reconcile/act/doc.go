// Package act carries out what was decided for one object: it sends the requests, and returns what came of them as one
// Result. It neither decides, remembers, reports nor counts, and does nothing about the upstream itself.
package act
