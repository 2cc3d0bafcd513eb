// Package before is about deletion.before: the object that is made when an upstream is deleted, and whose end the
// downstreams wait for. What must survive a restart is in the upstream's status.
package before
