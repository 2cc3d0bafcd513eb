// Package source reads rows from databases: it executes one query again and again, over one connection that is for
// reading only, and gives each row's columns as values of JSON. It knows nothing of Kubernetes, and never puts text
// into a statement.
package source
