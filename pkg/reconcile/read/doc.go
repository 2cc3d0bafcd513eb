// Package read reads what the caches do not show of one upstream: objects that lost the labels of a watch, whose kind
// is not watched, or that a request may have made; and whether other upstreams exist, which objects name.
package read
