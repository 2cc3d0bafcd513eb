// Package memcluster is a Kubernetes API server in memory, for `corollary test` and for simulation. A client talks to it through
// its RoundTrip; there is no socket and no goroutine, and time is time.Now, so that all of it runs in a testing/synctest bubble.
//
// It serves discovery, OpenAPI v3, and objects of the built-in kinds and of custom kinds: get, list, watch, create,
// update, delete, server-side apply, merge and JSON patches, the status subresource, dry runs. What it answers is held to a real
// kube-apiserver by TestConformance. uids and generated names are counters, the same in each run. The garbage collector and the
// namespace controller run when CollectGarbage is called.
//
// What it does not support it refuses, with 501 and a message that begins "the cluster in memory does not support":
//   - writing CustomResourceDefinitions by requests (call Define), conversion by webhooks, selectableFields
//   - authentication and authorization: everybody may do everything, and nobody can ask
//   - strategic merge patches, deleting collections, subresources other than status, the paths /watch/
//   - protobuf and CBOR (415, as for any unknown media type)
//   - selectors of fields other than metadata.name and metadata.namespace of built-in kinds
//   - reading a built-in kind at another version than the one that it was written at
//
// What is missing, and no request can tell:
//   - admission, webhooks, quotas, controllers
//   - of built-in kinds: defaults that are not in their OpenAPI schema (a Deployment's replicas), values that the server allocates
//     (a Service's clusterIP), validation other than that of metadata and types, graceful deletion, creation by an update; Events of
//     the core group and of events.k8s.io are different objects
//   - warnings, and the names of fields that were dropped from an object
package memcluster
