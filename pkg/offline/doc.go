// Package offline stands in for what an API server would tell of a custom resource where none is asked: the defaults of its
// schema, its inputs from files, and whether a config watches it. What render, test and the others show without a cluster
// begins with it; what follows from the custom resource the pipeline decides.
package offline
