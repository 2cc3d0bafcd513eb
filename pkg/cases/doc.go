// Package cases runs test cases of configs: YAML files with objects before a reconcile (a custom resource, its inputs,
// live objects) and the expected result (decisions, documents, conditions, status, errors). A case is one reconcile by
// pkg/reconcile, against pkg/memcluster. It makes no request to an API server, decides nothing itself, and writes a
// file only to update the expectations of a case.
package cases
