//go:build race

package render

// allocationFactor: under the race detector a sync.Pool drops a fourth of what it is given, so that package regexp allocates
// its machines anew again and again.
const allocationFactor = 16
