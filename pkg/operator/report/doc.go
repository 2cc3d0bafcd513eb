// Package report computes what the status of an upstream says: conditions, the identifiers of its downstreams, and
// status.fields. It is pure.
package report
