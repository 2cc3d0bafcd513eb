// Package drift finds out from an object alone, without a request, whether it is still what was applied.
//
// Server-side apply records in metadata.managedFields which fields a manager applied. Walking the fields of our own
// entry over the live object gives the projection: the live values of exactly the fields that we own. Where the API
// server normalized nothing, the projection is what we applied, so two digests decide: Desired, of what is about to be
// applied, and Live.P, of the projection. No schema is needed, since fieldsV1 describes itself: f: is a field, k: the
// keys of a list's item, v: a value of a set, i: an index, and . the place itself.
//
// What we own and the live object has not counts too: an empty value (args: []) that the API server does not store stays
// ours, and whoever sets it takes it out of our entry without touching any value that is there.
//
// Values count, not ownership alone: a second writer under our own manager's name, mutating admission during somebody
// else's write and forged managedFields all leave "our" fields with values that are not ours.
//
// The package is pure: no client, no cache, no clock. It decides nothing: it states facts about one object.
package drift
