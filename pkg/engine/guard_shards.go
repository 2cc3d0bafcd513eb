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
	digest string    // of the changes; "-" for none
	at     time.Time // of a batch, to the second; else zero
}

func (c shardCount) String() string {
	return fmt.Sprintf("%s %d %d %d %s %d", c.config, c.Existing, c.Changed, c.Deleted, c.digest, max(c.at.Unix(), 0))
}

// parseShardCount reads what String wrote.
func parseShardCount(text string) (c shardCount, ok bool) {
	var at int64
	n, err := fmt.Sscanf(text, "%s %d %d %d %s %d", &c.config, &c.Existing, &c.Changed, &c.Deleted, &c.digest, &at)
	if at > 0 {
		c.at = time.Unix(at, 0)
	}
	return c, err == nil && n == 6
}

// countBoard adds up the counts of all shards: at a start, no process acts before each shard was counted under its config.
type countBoard struct {
	shards.Board
	owned  shards.Owned
	config string
	// next is when the counts of others are read again, since when those of a batch were first published, mine what was published last.
	next, since time.Time
	mine        sum

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
	return &countBoard{Board: s.engine.options.Board(GuardBoard, s.operator.name), owned: s.shards.owned,
		config: strings.ReplaceAll(config, " ", "-"), waiting: "the counts of other processes are not read yet"}
}

// The keys of counts on a board, each with the number of a shard: those of a start or a changed config, and those of a batch.
const (
	startCountKey = "shard-"
	batchCountKey = "batch-"
)

// exchange publishes the counts of this process, as far as differs says, and returns all on the board; nil if it was done just now, or
// fails, which waiting says.
func (b *countBoard) exchange(ctx context.Context, mine sum, publish func(counts map[string]string) (differs bool)) map[string]string {
	if time.Now().Before(b.next) && mine == b.mine {
		return nil
	}
	b.next, b.mine = time.Now().Add(countBoardPeriod), mine
	ctx, cancel := context.WithTimeout(ctx, versionWait)
	defer cancel()
	counts, err := b.Update(ctx, publish)
	if err != nil {
		b.waiting = fmt.Sprintf("Lease %s, in which processes add up what guard counts, cannot be read or written, will retry: %v", b.Name, err)
		return nil
	}
	return counts
}

// refresh publishes the counts of this process and adds up those of all, at most once in a while. Nobody acts for a shard in quarantine:
// whoever takes it once that ends counts it then.
func (b *countBoard) refresh(ctx context.Context, all sum, mine map[int]shardCount) {
	counts := b.exchange(ctx, all, func(counts map[string]string) (differs bool) {
		for shard, c := range mine {
			if key := startCountKey + strconv.Itoa(shard); counts[key] != c.String() {
				counts[key], differs = c.String(), true
			}
		}
		return differs
	})
	if counts == nil {
		return
	}
	var missing []string
	b.addUp(func(shard int) (shardCount, bool) {
		c, ok := parseShardCount(counts[startCountKey+strconv.Itoa(shard)])
		if ok = ok && c.config == b.config; !ok && !b.owned.Quarantined(shard) {
			missing = append(missing, strconv.Itoa(shard))
		}
		return c, ok
	})
	if len(missing) > 0 {
		b.waiting = "guard waits until the process that holds each shard has counted it with this config; missing are shards " + strings.Join(missing, ", ")
	}
}

// addUp sets the total and the digest of the counts of all shards that there are. It returns how many these are.
func (b *countBoard) addUp(of func(shard int) (c shardCount, ok bool)) (counted int) {
	b.total, b.digest, b.waiting = reconcile.GuardCount{}, "", ""
	h, changed := sha256.New(), false
	for shard := range b.owned.Ring().N {
		c, ok := of(shard)
		if !ok {
			continue
		}
		counted++
		b.total.Add(c.GuardCount)
		if c.Changed > 0 {
			changed = true
			fmt.Fprintf(h, "%d %s\n", shard, c.digest)
		}
	}
	if changed {
		b.digest = hex.EncodeToString(h.Sum(nil)[:16])
	}
	return counted
}

// batchSettles is how long others have to publish what they count of a batch.
const batchSettles = 3 * time.Second

// refreshBatch is refresh for a batch, which other processes count at the same time, or not at all: what they published within the last
// minute counts. How many objects they have that did not publish is estimated: each shard has about the same number.
func (b *countBoard) refreshBatch(ctx context.Context, all sum, mine map[int]shardCount) {
	now := time.Now().Truncate(time.Second)
	counts := b.exchange(ctx, all, func(counts map[string]string) (differs bool) {
		for shard, c := range mine {
			key := batchCountKey + strconv.Itoa(shard)
			before, had := parseShardCount(counts[key])
			switch c.at = before.at; {
			case c.Changed == 0 && counts[key] == "", had && c == before && now.Sub(before.at).Abs() < batchWindow/2:
				continue
			case c.Changed == 0:
				delete(counts, key)
			default:
				c.at = now
				counts[key] = c.String()
			}
			differs = true
		}
		return differs
	})
	if counts == nil {
		return
	}
	counted := b.addUp(func(shard int) (shardCount, bool) {
		if c, ok := mine[shard]; ok {
			return c, true
		}
		c, ok := parseShardCount(counts[batchCountKey+strconv.Itoa(shard)])
		return c, ok && c.config == b.config && now.Sub(c.at).Abs() <= batchWindow
	})
	b.total.Existing = b.total.Existing * b.owned.Ring().N / max(counted, 1)
	if b.since.IsZero() {
		b.since = time.Now()
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
