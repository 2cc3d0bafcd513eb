// Package informers opens the watches of a pipeline and keeps what they show in little memory: upstreams and inputs
// compressed, downstreams as digests. Watches with equal permissions and views are shared by all operators of the
// process.
package informers
