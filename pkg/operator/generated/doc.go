// Package generated fills documents with the random values of Secrets (downstreams[].generated). They are made once,
// when an object is created, and only the object has them.
package generated
