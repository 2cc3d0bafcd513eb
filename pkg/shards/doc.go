// Package shards shares the work of a set of processes: each of them holds some of N virtual shards, and no shard is
// held by two. There is no coordinator. All processes list the Leases of the set, and each plans alone who should hold
// what.
//
// There are three kinds of Leases. ID is the Lease of the election: all processes of the set hold it together, so that
// a process without shards, or with another N, does not write beside them. ID-process-NAME is held by one process,
// which renews it: it is the heartbeat. ID-shard-K says which process holds the shard K; it changes only when the shard
// changes hands.
//
// A process may write for a shard as long as the shard's Lease names it, and its own Lease is within its renew
// deadline. Why no other process holds the shard then: another one takes it only when it was released, after its last
// reconcile, or when the Lease of its holder does not name that holder any more. A Lease of a process is taken away
// from it by an update with its resourceVersion, by a process that has seen it unchanged for a whole lease duration by
// its own clock. So either a renewal came first, and that update fails; or the update came first, and no renewal
// succeeds after it: a process that was frozen can not begin to write again, and its renew deadline, which is shorter
// than the lease duration, had passed before. Clocks of different machines are never compared.
//
// At rest a process sends about four requests in a retry period, whatever N is: it renews its own Lease, reads that of
// the set, and lists the others; one process of the set renews the Lease of the set.
//
// A shard whose holder dies while it loads the shard is suspect. Suspects are tried by one process at a time, in
// halves, while it loads nothing else. A shard that has killed several holders in a row, the last time alone, is in
// quarantine: nobody takes it until it is released by hand.
//
// The package knows nothing of the objects in a shard.
package shards
