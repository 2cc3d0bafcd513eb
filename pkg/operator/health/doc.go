// Package health says how live objects are doing, by kstatus and the expressions of a config: what is ready, what has
// failed, and whether the object of deletion.before has done its work. Report puts that into the status of an upstream.
package health
