// Package offline provides what an API server would add to a custom resource, for commands without a cluster such as render and
// test: the defaults of its schema, its inputs from files, and whether a config watches it. It decides nothing; the pipeline
// does.
package offline
