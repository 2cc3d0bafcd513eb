// Package memory is what one operator remembers about upstreams between two reconciliations: what was rendered, what
// its own writes returned while the caches lag behind them, which objects are an upstream's own, and what failed. It
// saves requests and reconciles, and is not needed for correctness: it is lost at a restart. It sends no requests and
// reads no cache.
package memory
