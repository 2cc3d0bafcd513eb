//go:build !race

package render

const allocationFactor = 1
