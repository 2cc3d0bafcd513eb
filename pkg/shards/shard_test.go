package shards

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/sharding"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/corollary-dev/corollary/internal/must"
)

// The transform of a process and the API server must put an object into the same shard, for every number of them.
func TestAnObjectHasOneShardAndItsSelectorSaysWhich(t *testing.T) {
	for _, n := range []int{1, 2, 3, 7, 16, 64, 100, 1000, 1024} {
		ring := Ring{n}
		counts := make([]int, n)
		for range 2000 {
			uid := string(uuid.NewUUID())
			shard := ring.Of(uid)
			counts[shard]++
			hash := "0x" + sharding.HashField(uid)
			if sharding.HexLess(hash, ring.start(shard)) || !sharding.HexLess(hash, ring.start(shard+1)) {
				t.Fatalf("N=%d: %s is in shard %d, and its hash %s not within %s and %s", n, uid, shard, hash, ring.start(shard), ring.start(shard+1))
			}
		}
		if n <= 16 && slices.Min(counts) < 2000/n/2 {
			t.Errorf("N=%d: the objects are spread unevenly: %v", n, counts)
		}
	}
	must.Same(t, "0x0000000000000000", (Ring{3}).start(0), "the first range begins at")
}

func TestSelector(t *testing.T) {
	for _, c := range []struct {
		reason string
		n      int
		owned  []int
		want   string
	}{
		{"all shards need no selector", 4, []int{0, 1, 2, 3}, ""},
		{"one shard is one range", 4, []int{1}, "shardRange(object.metadata.uid, '0x4000000000000000', '0x8000000000000000')"},
		{"the last range ends after the greatest hash", 2, []int{1},
			"shardRange(object.metadata.uid, '0x8000000000000000', '0x10000000000000000')"},
		{"ranges that touch are one, in any order", 4, []int{3, 0, 1}, "shardRange(object.metadata.uid, '0x0000000000000000', " +
			"'0x8000000000000000') || shardRange(object.metadata.uid, '0xc000000000000000', '0x10000000000000000')"},
	} {
		must.Same(t, c.want, (Ring{c.n}).Selector(c.owned), c.reason)
	}
}

func TestTheFieldIsTheAPIServers(t *testing.T) {
	o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{UID: types.UID("u"), Namespace: "n"}}
	if got, err := sharding.ResolveFieldValue(o, byUID); err != nil || got != "u" {
		t.Errorf("%s is %q: %v", byUID, got, err)
	}
}
