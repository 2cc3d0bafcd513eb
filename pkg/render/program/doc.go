// Package program executes compiled templates: it prints a skeleton with the placeholders of the holes, and fills it,
// within a Budget.
package program
