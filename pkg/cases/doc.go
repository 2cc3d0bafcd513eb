// Package cases runs test cases of configs: YAML files that say what goes in (a custom resource, its inputs, what stands in
// the cluster) and what should come out (decisions, documents, conditions, status, errors). A case is one reconcile by
// pkg/reconcile, against pkg/memcluster. It asks no API server, decides nothing itself, and writes a file only where the
// expectations of a case are to be updated.
package cases
