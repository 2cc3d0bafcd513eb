//go:build race

package render

// allocationFactor: under the race detector a sync.Pool drops a quarter of its items, so that package regexp allocates
// its machines again and again.
const allocationFactor = 16
