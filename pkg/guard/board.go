package guard

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

	"github.com/corollary-dev/corollary/pkg/canonical"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/shards"
)

// Processes are those that share the shards of an operator.
type Processes struct {
	// Board is where they add up what they count, Owned the shards of this one.
	Board shards.Board
	Owned shards.Owned
	// Config is the digest of the config.
	Config string
	// Held has the shards whose upstreams this process counts, and UID the uid of an upstream; empty if that is not known.
	Held func() []int
	UID  func(ref operator.Ref) types.UID
}

// PublishPassed publishes, for those shards of this process of which the board does not say so, that nothing waits.
func (p *Processes) PublishPassed(ctx context.Context, existing int) error {
	held := p.Held()
	if len(held) == 0 {
		return nil
	}
	b := p.board(startKey)
	passed := shardCount{config: b.config, Count: Count{Existing: existing / len(held)}, digest: "-", passed: true}
	_, err := b.write(ctx, func(counts map[string]string) (differs bool) {
		for _, shard := range held {
			key := b.key + strconv.Itoa(shard)
			if c, ok := parseShardCount(counts[key]); !ok || c.config != b.config || !c.passed {
				counts[key], differs = passed.String(), true
			}
		}
		return differs
	})
	return err
}

// board returns a board for the counts of one wait; nil if no other process counts.
func (p *Processes) board(key string) *countBoard {
	if p == nil {
		return nil
	}
	config := p.Config
	if len(config) > 16 {
		config = config[:16]
	}
	return &countBoard{Board: p.Board, processes: p, owned: p.Owned, key: key,
		config: strings.ReplaceAll(config, " ", "-"), waiting: "the counts of other processes are not read yet"}
}

// shardCount is what guard has counted in one shard, under one version of the config.
type shardCount struct {
	config string
	Count
	digest string // of the changes; "-" for none
	// at is when a batch was counted, to the second; zero for a start.
	at time.Time
	// passed is true once the changes wait no more: they do not count for a process that begins to wait later.
	passed bool
}

func (c shardCount) String() string {
	return fmt.Sprintf("%s %d %d %d %s %d %t %d", c.config, c.Existing, c.Changed, c.Deleted, c.digest, max(c.at.Unix(),
		0), c.passed, c.Failing)
}

// parseShardCount reads what String wrote. The last number is not there in what an older version wrote.
func parseShardCount(text string) (c shardCount, ok bool) {
	var at int64
	n, _ := fmt.Sscanf(text, "%s %d %d %d %s %d %t %d", &c.config, &c.Existing, &c.Changed, &c.Deleted,
		&c.digest, &at, &c.passed, &c.Failing)
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

// countBoard adds up the counts of all shards: at a start, no process acts before each shard was counted under its
// config.
type countBoard struct {
	shards.Board
	processes *Processes
	owned     shards.Owned
	config    string
	// key is that of the counts on the board, before the number of the shard.
	key string
	// next is when the counts of others are read again, since when this process has the same counts, own what it published
	// last.
	next, since time.Time
	own         Sum
	published   map[int]shardCount
	// passed has the counts that had passed when the board was read first; nil before that.
	passed map[int]shardCount

	// total and digest are of all shards, as of the last refresh; waiting says what they lack, and is empty if they are
	// complete.
	total   Count
	digest  string
	waiting string
}

// boardWait bounds one request, and countBoardPeriod is how often the counts of other processes are read while guard
// waits for them.
const (
	boardWait        = 5 * time.Second
	countBoardPeriod = time.Second
)

// The keys of counts on a board: those of a start or a changed config, and those of a batch.
const (
	startKey = "shard-"
	batchKey = "batch-"
)

// exchange publishes the counts of this process, and returns all on the board; nil if that was done just now, or fails,
// which waiting says. own is what the counts were made of. Those of a batch are renewed at times, and deleted where
// nothing would change.
func (b *countBoard) exchange(ctx context.Context, own Sum, mine map[int]shardCount, now time.Time) map[string]string {
	same := own.tally == b.own.tally && own.version == b.own.version
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
		b.waiting = fmt.Sprintf(
			"Lease %s, in which processes add up what guard counts, cannot be read or written, will retry: %v", b.Name, err)
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
	if b.key == batchKey {
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
	ctx, cancel := context.WithTimeout(ctx, boardWait)
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

// end says that what this process published waits no more. At a start it counts for others that wait now, and no more
// for those that begin later; so does what was confirmed of a batch. What guard allowed of a batch counts until it is
// too old.
func (b *countBoard) end(ctx context.Context, how ended) {
	if b == nil || how == allowed && b.key == batchKey ||
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

// of is the count of a shard on the board. If it had passed before this process began to wait, nothing would change any
// more.
func (b *countBoard) of(counts map[string]string, shard int) (c shardCount, ok bool) {
	c, ok = parseShardCount(counts[b.key+strconv.Itoa(shard)])
	if before, had := b.passed[shard]; had && c.passed && c.isLike(before) {
		c.Changed, c.Deleted, c.Failing = 0, 0, 0
	}
	return c, ok && c.config == b.config
}

// refresh publishes the counts of this process and adds up those of all, at most once in a while. Nobody acts for a
// shard in quarantine: whoever takes it once that ends counts it then.
func (b *countBoard) refresh(ctx context.Context, own Sum, mine map[int]shardCount) {
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
		b.waiting = "guard waits until the process that holds each shard has counted it with this config; missing are " +
			"shards " +
			strings.Join(missing, ", ")
	}
}

// addUp sets the total and the digest of the counts of all shards that there are. It returns how many these are.
func (b *countBoard) addUp(countOf func(shard int) (c shardCount, ok bool)) (counted int) {
	b.total, b.digest, b.waiting = Count{}, "", ""
	h, changed := sha256.New(), false
	for shard := range b.owned.Ring().N {
		c, ok := countOf(shard)
		if !ok {
			continue
		}
		counted++
		b.total.Add(c.Count)
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
	// batchSettles is how long others have to publish what they count of a batch, and batchRenewed after what time counts
	// that wait are published again.
	batchSettles = 3 * time.Second
	batchRenewed = 10 * time.Second
)

// refreshBatch is refresh for a batch, which other processes count at the same time, or not at all: what they published
// within the last minute counts. How many objects they have that did not publish is estimated: each shard has about the
// same number.
func (b *countBoard) refreshBatch(ctx context.Context, own Sum, mine map[int]shardCount) {
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

// count are the counts of a tally by shard. An upstream whose uid is not known counts in the first shard that is held.
func (b *countBoard) count(t *Tally) map[int]shardCount {
	counts, changes := map[int]shardCount{}, map[int]map[operator.Ref]canonical.Sum{}
	held := b.processes.Held()
	for _, shard := range held {
		counts[shard], changes[shard] = shardCount{config: b.config, digest: "-"}, map[operator.Ref]canonical.Sum{}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for ref, found := range t.counted {
		if len(held) == 0 {
			break
		}
		shard := held[0]
		if uid := b.processes.UID(ref); uid != "" {
			shard = b.owned.Ring().Of(string(uid))
		}
		c, ok := counts[shard]
		if !ok {
			continue // it is another process's by now
		}
		c.Add(found.Count)
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
