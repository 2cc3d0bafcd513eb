// Package cases runs test cases of configs: YAML files that say what goes in (a custom resource, its inputs, what stands in
// the cluster) and what should come out (decisions, documents, conditions, status, errors). What is decided is decided by
// the pipeline and carried out in memory, against what an API server's own library makes of an apply. It asks no API
// server, and it writes a file only where the expectations of a case are to be updated.
package cases
