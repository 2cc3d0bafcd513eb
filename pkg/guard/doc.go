// Package guard adds up what a config, an input or a lost row would change, and says whether that may happen without a
// confirmation. It sends no request by itself: it is given counts of upstreams, and a board on which the processes that
// share shards write theirs.
package guard
