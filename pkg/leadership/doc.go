// Package leadership lets only one of several processes write at a time. It also stops a process that is no longer the
// leader and does not know it: because it was frozen, its machine was suspended, or the API server cannot be reached.
//
// Election campaigns for a Lease and renews it with client-go's elector. Beside that elector it keeps a tenure: writing
// is allowed until the renew deadline has passed since the last successful renewal was sent. Fence holds the requests
// of a client to that, where a request is made and once more where its bytes go to the network.
//
// A process that uses it either waits on standby with warm caches and then leads for as long as it runs, or has one
// thing to do and ends.
//
// It knows nothing of what is written, and elects nobody where it is not asked to.
package leadership
