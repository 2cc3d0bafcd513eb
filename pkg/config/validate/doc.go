// Package validate checks the values of configs: what can be known from the files alone. It compiles no CEL and no
// template, and knows no cluster.
package validate
