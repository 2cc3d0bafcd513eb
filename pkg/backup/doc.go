// Package backup writes custom objects, their status, their downstreams and definitions to a directory or a .tar.zst
// file, and restores them, into another namespace or cluster too. It holds a page of objects at a time, and knows no
// operator: what to list, and the names of owner and pause annotations, are given.
//
// A backup is manifest.json, definitions/NAME.json, and objects/RESOURCE.GROUP/NAMESPACE.json: JSON documents with
// sorted keys, in the order of the API server, that kubectl can read as well. The files of unchanged objects have the
// same bytes each time (those of Secrets, which are encrypted, excepted).
package backup
