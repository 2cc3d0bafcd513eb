package clusters

import (
	"fmt"
	"slices"
	"time"
)

// Taking is an accepted write of a shard's Lease: from then on the process acts for the shard; "" for none.
type Taking struct {
	// Received is when the API server received it, Done when it was carried out.
	Received, Done time.Time
	Shard          int
	Process        string
	By             string // the process that wrote it
	// Suspect: a process died while it loaded the shard. Such shards are tried one after the other.
	Suspect bool
}

// ShardWrite is an accepted write of a process for an object of a shard.
type ShardWrite struct {
	At      time.Time // when the API server received it
	Shard   int
	Process string
	What    string
}

func (w ShardWrite) String() string {
	return fmt.Sprintf("%s %s shard %d: %s", w.At.Format("15:04:05.000000"), w.Process, w.Shard, w.What)
}

// CheckOwners returns the writes for a shard by a process that did not hold its Lease then. The moment in which a Lease
// changed hands lies between the receipt of the write and its answer: both processes may be right there.
func CheckOwners(writes []ShardWrite, takings []Taking) []string {
	byShard := map[int][]Taking{}
	for _, x := range takings {
		byShard[x.Shard] = append(byShard[x.Shard], x)
	}
	for _, list := range byShard {
		slices.SortFunc(list, func(a, b Taking) int { return a.Done.Compare(b.Done) })
	}
	var wrong []string
	for _, w := range writes {
		if owner, ok := mayOwn(byShard[w.Shard], w); !ok {
			wrong = append(wrong, fmt.Sprintf("%s: %s held the shard", w, owner))
		}
	}
	return wrong
}

// mayOwn reports whether a process may have held the shard when it wrote, and who held it if not.
func mayOwn(takings []Taking, w ShardWrite) (owner string, ok bool) {
	owner = "no process"
	for i, x := range takings {
		if x.Received.After(w.At) {
			continue
		}
		if !x.Done.After(w.At) {
			if owner = x.Process; owner == "" {
				owner = "no process"
			}
		}
		over := i+1 < len(takings) && takings[i+1].Done.Before(w.At)
		if x.Process == w.Process && !over {
			return owner, true
		}
	}
	return owner, false
}

// Orphaned is the longest time from the last renewal of a process that held a shard and did not give it up, to the
// moment since then when another process took it. Shards that are suspect do not count.
func Orphaned(takings []Taking, renewed map[string]time.Time, since time.Time) (longest time.Duration) {
	takings = slices.Clone(takings)
	slices.SortFunc(takings, func(a, b Taking) int { return a.Done.Compare(b.Done) })
	last := map[int]string{}
	for _, x := range takings {
		before := last[x.Shard]
		if x.Process == "" && x.By != before {
			continue // another process writes down that the holder died
		}
		if last[x.Shard] = x.Process; before == "" || x.Process == "" || before == x.Process ||
			x.Suspect || x.Received.Before(since) {
			continue
		}
		longest = max(longest, x.Received.Sub(renewed[before]))
	}
	return longest
}
