// Package write writes what an upstream itself has of this operator: its part of the status, without what cannot be
// stored and with growing delay if others overwrite it, and the finalizer. What the status says is made by package
// report, of pkg/operator.
package write
