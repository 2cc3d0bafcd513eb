// Package shards shares the work of one set of processes: each holds some of N virtual shards, and no shard is held by two.
package shards
