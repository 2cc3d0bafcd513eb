package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/pipeline"
	"github.com/corollary-dev/corollary/pkg/reconcile"
	"github.com/corollary-dev/corollary/pkg/shards"
)

// shardCount is what guard has counted in one shard, under one version of the config.
type shardCount struct {
	config string
	reconcile.GuardCount
	digest string // of the changes; "-" for none
}

func (c shardCount) String() string {
	return fmt.Sprintf("%s %d %d %d %s", c.config, c.Existing, c.Changed, c.Deleted, c.digest)
}

// parseShardCount reads what String wrote.
func parseShardCount(text string) (c shardCount, ok bool) {
	n, err := fmt.Sscanf(text, "%s %d %d %d %s", &c.config, &c.Existing, &c.Changed, &c.Deleted, &c.digest)
	return c, err == nil && n == 5
}

// countBoard adds up the counts of all shards: no process acts before each shard was counted under its config.
type countBoard struct {
	shards.Board
	shards int
	config string
	next   time.Time

	// total and digest are of all shards, as of the last refresh; waiting says what they lack, and is empty if they are complete.
	total   reconcile.GuardCount
	digest  string
	waiting string
}

// countBoardPeriod is how often the counts of other processes are read while guard waits for them.
const countBoardPeriod = time.Second

// newCountBoard returns the board of a session; nil if no other process counts.
func (s *session) newCountBoard() *countBoard {
	if s.shards == nil || s.engine.options.Board == nil {
		return nil
	}
	config := s.generation.digest
	if len(config) > 16 {
		config = config[:16]
	}
	return &countBoard{Board: s.engine.options.Board(GuardBoard, s.operator.name), shards: s.shards.owned.Ring().N,
		config: strings.ReplaceAll(config, " ", "-"), waiting: "the counts of other processes are not read yet"}
}

const shardCountKey = "shard-"

// refresh publishes the counts of this process and adds up those of all, at most once in a while.
func (b *countBoard) refresh(ctx context.Context, mine map[int]shardCount) {
	if time.Now().Before(b.next) {
		return
	}
	b.next = time.Now().Add(countBoardPeriod)
	ctx, cancel := context.WithTimeout(ctx, versionWait)
	defer cancel()
	counts, err := b.Update(ctx, func(counts map[string]string) (differs bool) {
		for shard, c := range mine {
			if key := shardCountKey + strconv.Itoa(shard); counts[key] != c.String() {
				counts[key], differs = c.String(), true
			}
		}
		return differs
	})
	if err != nil {
		b.waiting = fmt.Sprintf("Lease %s, in which processes add up what guard counts, cannot be read or written, will retry: %v", b.Name, err)
		return
	}
	b.total, b.digest, b.waiting = reconcile.GuardCount{}, "", ""
	var missing []string
	h, changed := sha256.New(), false
	for shard := range b.shards {
		c, ok := parseShardCount(counts[shardCountKey+strconv.Itoa(shard)])
		if !ok || c.config != b.config {
			missing = append(missing, strconv.Itoa(shard))
			continue
		}
		b.total.Add(c.GuardCount)
		if c.Changed > 0 {
			changed = true
			fmt.Fprintf(h, "%d %s\n", shard, c.digest)
		}
	}
	if changed {
		b.digest = hex.EncodeToString(h.Sum(nil)[:16])
	}
	if len(missing) > 0 {
		b.waiting = "guard waits until the process that holds each shard has counted it with this config; missing are shards " + strings.Join(missing, ", ")
	}
}

// shardCounts are the counts of a tally by shard. An upstream that the cache does not show counts in the first shard that is held.
func (s *session) shardCounts(t *tally, config string) map[int]shardCount {
	counts, changes := map[int]shardCount{}, map[int]map[pipeline.Ref]drift.Sum{}
	held := s.shards.held()
	for _, shard := range held {
		counts[shard], changes[shard] = shardCount{config: config, digest: "-"}, map[pipeline.Ref]drift.Sum{}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for ref, found := range t.counted {
		if len(held) == 0 {
			break
		}
		shard := held[0]
		if uid := s.cache.UpstreamUID(ref); uid != "" {
			shard = s.shards.Of(uid)
		}
		c, ok := counts[shard]
		if !ok {
			continue // it is another process's by now
		}
		c.Add(found.GuardCount)
		if found.Changed > 0 {
			changes[shard][ref] = found.Digest
		}
		counts[shard] = c
	}
	for shard, set := range changes {
		if c := counts[shard]; len(set) > 0 {
			c.digest = changeDigest(set)
			counts[shard] = c
		}
	}
	return counts
}

// held are the shards that are loaded.
func (s *sessionShards) held() (list []int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for shard := range s.ready {
		list = append(list, shard)
	}
	slices.Sort(list)
	return list
}
