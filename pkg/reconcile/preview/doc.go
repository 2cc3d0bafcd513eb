// Package preview finds by dry runs what would be done with each object of one upstream, as plan, why and get show it,
// and what guard counts of that.
package preview
