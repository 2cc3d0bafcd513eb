// Package survey previews with dry runs what run would do for all upstreams, for plan, why and get. It writes nothing.
package survey
