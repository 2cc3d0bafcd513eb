// Package events reports what is done for an upstream and what a person must look at: by events, if the config wants
// them, and in the log. What the status says is reported by package report, of pkg/operator.
package events
