// Package decode fills config types from the values of a document, strictly: every field must be known, every type fit.
package decode
