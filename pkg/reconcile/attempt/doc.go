// Package attempt gathers what one upstream has, carries out what was decided of it, and keeps what failed of that.
// Which upstream, and whether and when, is decided by its caller.
package attempt
