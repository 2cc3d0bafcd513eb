// Package sqltext finds the named parameters of a SQL statement, such as $id. It knows where text, quoted names and
// comments end, and nothing else of SQL.
package sqltext
