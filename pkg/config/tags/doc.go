// Package tags reads the struct tags of config types.
package tags
