// Package skeleton parses what a template prints: its own YAML, with a placeholder for each hole. No value of an
// upstream passes through its parser.
package skeleton
