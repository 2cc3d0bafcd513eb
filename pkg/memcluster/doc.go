// Package memcluster is a Kubernetes API server in memory, for `corollary test` and for simulation. A client talks to it through
// its RoundTrip; there is no socket and no goroutine, and time is time.Now, so that all of it runs in a testing/synctest bubble.
//
// It serves discovery, OpenAPI v3, and objects of the built-in kinds and of CustomResourceDefinitions: get, list, watch, create,
// update, delete, server-side apply, merge and JSON patches, the status subresource, dry runs. What it answers is held to a real
// kube-apiserver by TestConformance. uids and generated names are counted, so that runs are equal. The garbage collector and the
// namespace controller run when CollectGarbage is called.
//
// What it does not do it refuses, with 501 and a message that begins "the cluster in memory does not support":
//   - writing CustomResourceDefinitions by requests (call Define), conversion by webhooks, selectableFields
//   - authentication and authorization: everybody may do everything, and nobody can ask
//   - strategic merge patches, deleting collections, subresources other than status, the paths /watch/
//   - protobuf and CBOR (415, as for any unknown media type)
//   - selectors of fields other than metadata.name and metadata.namespace of built-in kinds
//   - reading a built-in kind at another version than the one that it was written at
//
// What it leaves out without a word, since no request asks for it:
//   - admission, webhooks, quotas, controllers
//   - built-in kinds: defaults other than those in their OpenAPI schema (a Deployment's replicas), values that the server allocates
//     (a Service's clusterIP), validation other than that of metadata and of types. Events of the two groups are not the same
//     objects, an update of what is missing never creates, and nothing is deleted gracefully
//   - warnings, and the names of what was dropped from an object
package memcluster
