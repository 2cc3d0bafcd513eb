// Package offline is for commands without a cluster, such as render and test: it reads objects from files, provides
// what an API server would add to a custom resource (the defaults of its schema, its inputs, whether a config watches
// it), and renders what would be applied to an empty cluster. It decides nothing; the pipeline does.
package offline
