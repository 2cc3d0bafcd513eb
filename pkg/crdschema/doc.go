// Package crdschema writes what a CustomResourceDefinition says of a kind: schemas as JSON has them, that of the status
// which an operator writes, what a definition lacks to store it, and columns for kubectl get. It makes new schemas; those
// that are there are read by the kinds package.
package crdschema
