// Package managed reads the managedFields of an object: which field manager owns which of its fields. It makes
// projections of these fields and their digests. It knows no views, and decides nothing.
//
// fieldsV1 describes itself: f: is a field, k: the keys of a list item, v: a value of a set, i: an index, and . the
// place itself.
package managed
