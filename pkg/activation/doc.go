// Package activation makes one of several clusters the active one: the one whose process holds a lock that lies outside
// of them. The lock is a leadership.Store, the time in which its holder may write a leadership.Tenure;
// pkg/activation/locks opens the stores that configs name, and this package runs the election and reports it by metrics
// and logs.
//
// It does not know what is written. It does not elect among the replicas of one cluster: only the one that leads there
// takes part.
package activation
