// Package drift determines from a live object, without a request, whether it still is as it was applied.
//
// Server-side apply records in metadata.managedFields which fields a manager applied. The live values of the fields in
// our own entry are the projection. If the API server normalized nothing, the projection is what we applied, so two
// digests are compared: Desired, of what we are about to apply, and Live.P, of the projection. No schema is needed,
// because fieldsV1 describes itself.
//
// Fields that we own and that are missing in the live object count too: an empty value (args: []) that the API server
// does not store stays ours, and a writer that sets it removes it from our entry without changing any value.
//
// Values count, not only ownership: a second writer with our manager name, mutating admission and forged managedFields
// all leave our fields with other values. The package is pure and decides nothing: no client, no cache, no clock.
package drift
