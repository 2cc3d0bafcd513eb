// Package schema has schemas as CEL sees them: the types of expressions, and values with the meaning that they have in
// rules of a CustomResourceDefinition.
package schema
