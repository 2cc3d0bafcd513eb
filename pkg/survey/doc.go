// Package survey finds out for all upstreams what run would do, by dry runs: plan, why and get show it. It writes nothing.
package survey
