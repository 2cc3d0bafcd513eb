package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

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
	// at is when a batch was counted, to the second; zero for a start.
	at time.Time
	// passed is true once the changes wait no more: they do not count for a process that begins to wait later.
	passed bool
}

func (c shardCount) String() string {
	return fmt.Sprintf("%s %d %d %d %s %d %t %d", c.config, c.Existing, c.Changed, c.Deleted, c.digest, max(c.at.Unix(), 0), c.passed, c.Failing)
}

// parseShardCount reads what String wrote. The last number is not there in what an older version wrote.
func parseShardCount(text string) (c shardCount, ok bool) {
	var at int64
	n, _ := fmt.Sscanf(text, "%s %d %d %d %s %d %t %d", &c.config, &c.Existing, &c.Changed, &c.Deleted, &c.digest, &at, &c.passed, &c.Failing)
	if at > 0 {
		c.at = time.Unix(at, 0)
	}
	return c, n >= 7
}

// isLike reports whether the changes are the same.
func (c shardCount) isLike(other shardCount) bool {
	c.at, c.passed = other.at, other.passed
	return c == other
}

// countBoard adds up the counts of all shards: at a start, no process acts before each shard was counted under its config.
type countBoard struct {
	shards.Board
	owned  shards.Owned
	config string
	// key is that of the counts on the board, before the number of the shard.
	key string
	// next is when the counts of others are read again, since when this process has the same counts, own what it published last.
	next, since time.Time
	own         sum
	published   map[int]shardCount
	// passed has the counts that had passed when the board was read first; nil before that.
	passed map[int]shardCount

	// total and digest are of all shards, as of the last refresh; waiting says what they lack, and is empty if they are complete.
	total   reconcile.GuardCount
	digest  string
	waiting string
}

// countBoardPeriod is how often the counts of other processes are read while guard waits for them.
const countBoardPeriod = time.Second

// The keys of counts on a board: those of a start or a changed config, and those of a batch.
const (
	startCountKey = "shard-"
	batchCountKey = "batch-"
)

// newCountBoard returns a board of a session; nil if no other process counts.
func (s *session) newCountBoard(key string) *countBoard {
	if s.shards == nil || s.engine.options.Board == nil {
		return nil
	}
	config := s.generation.digest
	if len(config) > 16 {
		config = config[:16]
	}
	return &countBoard{Board: s.engine.options.Board(s.operator.name), owned: s.shards.owned, key: key,
		config: strings.ReplaceAll(config, " ", "-"), waiting: "the counts of other processes are not read yet"}
}

// exchange publishes the counts of this process, and returns all on the board; nil if that was done just now, or fails, which waiting says.
// own is what the counts were made of. Those of a batch are renewed at times, and deleted where nothing would change.
func (b *countBoard) exchange(ctx context.Context, own sum, mine map[int]shardCount, now time.Time) map[string]string {
	same := own.of == b.own.of && own.version == b.own.version
	if time.Now().Before(b.next) && same {
		return nil
	}
	if !same {
		b.since = time.Now()
	}
	b.next, b.own = time.Now().Add(countBoardPeriod), own
	counts, err := b.write(ctx, func(counts map[string]string) bool {
		before := maps.Clone(counts)
		for shard, c := range mine {
			b.put(counts, b.key+strconv.Itoa(shard), c, now)
		}
		return !maps.Equal(before, counts)
	})
	if err != nil {
		b.waiting = fmt.Sprintf("Lease %s, in which processes add up what guard counts, cannot be read or written, will retry: %v", b.Name, err)
		return nil
	}
	b.published = mine
	if b.passed == nil {
		b.passed = map[int]shardCount{}
		for shard := range b.owned.Ring().N {
			if c, ok := parseShardCount(counts[b.key+strconv.Itoa(shard)]); ok && c.passed {
				b.passed[shard] = c
			}
		}
	}
	return counts
}

// put puts a count of this process on the board.
func (b *countBoard) put(counts map[string]string, key string, c shardCount, now time.Time) {
	if b.key == batchCountKey {
		before, had := parseShardCount(counts[key])
		if c.at = before.at; !had || !c.isLike(before) || now.Sub(c.at).Abs() >= batchRenewed {
			c.at = now
		}
		if c.Changed == 0 {
			delete(counts, key)
			return
		}
	}
	counts[key] = c.String()
}

func (b *countBoard) write(ctx context.Context, change func(counts map[string]string) bool) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, versionWait)
	defer cancel()
	return b.Update(ctx, change)
}

// ended says what has become of changes that waited.
type ended int

const (
	allowed ended = iota
	confirmed
	withdrawn
)

// end says that what this process published waits no more. At a start it counts for others that wait now, and no more for those that begin
// later; so does what was confirmed of a batch. What guard allowed of a batch counts until it is too old.
func (b *countBoard) end(ctx context.Context, how ended) {
	if b == nil || how == allowed && b.key == batchCountKey ||
		!slices.ContainsFunc(slices.Collect(maps.Values(b.published)), func(c shardCount) bool { return c.Any() }) {
		return
	}
	_, err := b.write(ctx, func(counts map[string]string) (differs bool) {
		for shard, mine := range b.published {
			key := b.key + strconv.Itoa(shard)
			c, ok := parseShardCount(counts[key])
			if !ok || !c.Any() || c.passed || !c.isLike(mine) {
				continue
			}
			if differs = true; how == withdrawn {
				delete(counts, key)
				continue
			}
			c.passed = true
			counts[key] = c.String()
		}
		return differs
	})
	if err == nil { // else others count too much, and wait for a confirmation without need
		b.published = nil
	}
}

// publishPassed publishes, for those shards of this process of which the board does not say so, that nothing waits. It returns false if it
// has to be tried again.
func (s *session) publishPassed(ctx context.Context) (published bool) {
	b, held := s.newCountBoard(startCountKey), s.shards.Held()
	if b == nil || len(held) == 0 || s.pipeline.Config.Guard == nil || s.pipeline.Observing() {
		return true
	}
	passed := shardCount{config: b.config, GuardCount: reconcile.GuardCount{Existing: s.cache.CountDownstreams() / len(held)}, digest: "-", passed: true}
	_, err := b.write(ctx, func(counts map[string]string) (differs bool) {
		for _, shard := range held {
			key := b.key + strconv.Itoa(shard)
			if c, ok := parseShardCount(counts[key]); !ok || c.config != b.config || !c.passed {
				counts[key], differs = passed.String(), true
			}
		}
		return differs
	})
	if err != nil && ctx.Err() == nil {
		s.operator.log.Info("cannot publish that nothing waits for guard, will retry: until then, a process that starts waits for it", "lease", b.Name, "error", err.Error())
	}
	return err == nil
}

// of is the count of a shard on the board. If it had passed before this process began to wait, nothing would change any more.
func (b *countBoard) of(counts map[string]string, shard int) (c shardCount, ok bool) {
	c, ok = parseShardCount(counts[b.key+strconv.Itoa(shard)])
	if before, had := b.passed[shard]; had && c.passed && c.isLike(before) {
		c.Changed, c.Deleted, c.Failing = 0, 0, 0
	}
	return c, ok && c.config == b.config
}

// refresh publishes the counts of this process and adds up those of all, at most once in a while. Nobody acts for a shard in quarantine:
// whoever takes it once that ends counts it then.
func (b *countBoard) refresh(ctx context.Context, own sum, mine map[int]shardCount) {
	counts := b.exchange(ctx, own, mine, time.Time{})
	if counts == nil {
		return
	}
	var missing []string
	b.addUp(func(shard int) (shardCount, bool) {
		if b.owned.Quarantined(shard) {
			return shardCount{}, false
		}
		c, ok := b.of(counts, shard)
		if !ok {
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
		if c.Any() {
			changed = true
			fmt.Fprintf(h, "%d %s\n", shard, c.digest)
		}
	}
	if changed {
		b.digest = hex.EncodeToString(h.Sum(nil)[:16])
	}
	return counted
}

const (
	// batchSettles is how long others have to publish what they count of a batch, and batchRenewed after what time counts that wait are
	// published again.
	batchSettles = 3 * time.Second
	batchRenewed = 10 * time.Second
)

// refreshBatch is refresh for a batch, which other processes count at the same time, or not at all: what they published within the last
// minute counts. How many objects they have that did not publish is estimated: each shard has about the same number.
func (b *countBoard) refreshBatch(ctx context.Context, own sum, mine map[int]shardCount) {
	now := time.Now().Truncate(time.Second)
	counts := b.exchange(ctx, own, mine, now)
	if counts == nil {
		return
	}
	counted := b.addUp(func(shard int) (shardCount, bool) {
		if c, ok := mine[shard]; ok {
			return c, true
		}
		c, ok := b.of(counts, shard)
		return c, ok && now.Sub(c.at).Abs() <= batchWindow
	})
	b.total.Existing = b.total.Existing * b.owned.Ring().N / max(counted, 1)
}

// shardCounts are the counts of a tally by shard. An upstream that the cache does not show counts in the first shard that is held.
func (s *session) shardCounts(t *tally, config string) map[int]shardCount {
	counts, changes := map[int]shardCount{}, map[int]map[pipeline.Ref]drift.Sum{}
	held := s.shards.Held()
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
		if uid := s.uidOf(ref); uid != "" {
			shard = s.shards.Of(uid)
		}
		c, ok := counts[shard]
		if !ok {
			continue // it is another process's by now
		}
		c.Add(found.GuardCount)
		if found.Any() {
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

// uidOf is the uid of an upstream; empty if the cache does not show it. A row that is gone still has one.
func (s *session) uidOf(ref pipeline.Ref) types.UID {
	if uid := s.cache.UpstreamUID(ref); uid != "" || !s.pipeline.HasRows() {
		return uid
	}
	return s.pipeline.Row(ref.Name, nil).GetUID()
}

// dropLost removes what is counted of upstreams that are no longer those of this process: another one counts them.
func (s *session) dropLost() {
	lost := func(ref pipeline.Ref) bool {
		uid := s.uidOf(ref)
		return uid == "" || !s.shards.owned.Has(s.shards.Of(uid))
	}
	s.batch.drop(lost)
	s.pool.tally.Load().drop(lost)
}

// Held implements reconcile.Shards.
func (s *sessionShards) Held() (list []int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for shard := range s.ready {
		list = append(list, shard)
	}
	slices.Sort(list)
	return list
}
