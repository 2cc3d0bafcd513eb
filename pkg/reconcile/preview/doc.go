// Package preview has what a dry run for one upstream finds: what would be done with each of its objects, as plan, why and get
// show it.
package preview
