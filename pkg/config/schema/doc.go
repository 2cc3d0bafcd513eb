// Package schema writes the JSON Schema of each kind of config file, from the types that files are decoded into.
package schema
