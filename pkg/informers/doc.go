// Package informers opens the watches of a pipeline and keeps what they show in little room: upstreams and inputs compressed,
// downstreams as their digests. Watches with equal rights and views are shared by all operators of the process.
package informers
