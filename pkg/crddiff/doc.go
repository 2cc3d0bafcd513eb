// Package crddiff compares two states of a CustomResourceDefinition: what a change means for stored objects, for
// clients, and for the way back. It makes no requests, and it does not look at objects.
package crddiff
