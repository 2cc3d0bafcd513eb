// Package memcluster is a Kubernetes API server in memory, for `corollary test`, `corollary dev` and simulation. A client uses its
// RoundTrip; there is no socket and no goroutine, and time is time.Now, so that it runs in a testing/synctest bubble.
//
// It serves discovery, OpenAPI v3, and objects of the built-in kinds and of custom kinds: get, list, watch, create,
// update, delete, server-side apply, strategic, merge and JSON patches, the status subresource, dry runs, tables. A
// CustomResourceDefinition that is written is served at once. TestConformance compares it with a real kube-apiserver.
// uids and generated names are counters, the same in each run. CollectGarbage runs the garbage collector and the
// namespace controller.
//
// Unsupported requests get 501 and a message that begins "the cluster in memory does not support":
//   - CustomResourceDefinitions with conversion by webhooks or selectableFields
//   - authentication and authorization: everyone may do everything, and may ask only for its own rights
//   - subresources other than status, the paths /watch/
//   - answers in protobuf and CBOR, and bodies in CBOR (415, as for any unknown media type)
//   - selectors of many fields of built-in kinds
//   - reading a built-in kind at another version than the one that it was written at
//
// Missing without an error:
//   - admission, webhooks, quotas, controllers
//   - of built-in kinds: defaults that are not in their OpenAPI schema (a Deployment's replicas), values that the
//     server allocates (a Service's clusterIP), graceful deletion, creation by an update, validation other than that of
//     metadata and types and of ConfigMaps and Secrets; names that two CustomResourceDefinitions claim
//   - tables of built-in kinds: a client prints their names and ages
//   - warnings, and the names of fields that were dropped from an object
package memcluster
