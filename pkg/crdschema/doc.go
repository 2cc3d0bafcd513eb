// Package crdschema writes parts of CustomResourceDefinitions: the schema of the status that an operator writes, what a
// definition lacks to store it, and printer columns. It only makes new schemas; pkg/kinds reads existing ones.
package crdschema
