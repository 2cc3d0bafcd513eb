// Package cost says what expressions cost, in units of CEL: while they are evaluated, and at most, for the bounds of
// a schema. The estimators are those of Kubernetes; prices are for calls that these let make or compute too much.
package cost
