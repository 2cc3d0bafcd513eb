// Package canonical has the canonical form of documents, and digests and hashes of it, so that two documents compare by
// a few bytes. It knows nothing of live objects, managedFields or schemas; see pkg/drift for those.
package canonical
