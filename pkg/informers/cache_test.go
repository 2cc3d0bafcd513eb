package informers

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/shards"
)

// TestCountDownstreams: each object is counted once, whichever watches show it.
func TestCountDownstreams(t *testing.T) {
	t.Parallel()
	maps := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	secrets := schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	ring := shards.Ring{N: 2}
	one, other := NewShardSet(ring, 0), NewShardSet(ring, 1)
	watching := func(names ...string) *sharedWatch {
		indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
		for _, name := range names {
			if err := indexer.Add(&drift.Live{Identity: drift.Identity{Name: name, UID: types.UID(name), Namespace: "n"}}); err != nil {
				t.Fatal(err)
			}
		}
		return &sharedWatch{informer: informerOf{indexer: indexer}}
	}
	type shown struct {
		downstream int
		key        Key
		names      []string
	}
	for reason, row := range map[string]struct {
		shown []shown
		want  int
	}{
		"one watch": {[]shown{{0, Key{GVR: maps}, []string{"a", "b"}}}, 2},
		"two kinds": {[]shown{{0, Key{GVR: maps}, []string{"a"}}, {1, Key{GVR: secrets}, []string{"b"}}}, 2},
		"two views of one kind": {[]shown{
			{0, Key{GVR: maps, View: "x"}, []string{"a", "b"}}, {1, Key{GVR: maps, View: "y"}, []string{"a", "b"}}}, 2},
		"one of them in a namespace": {[]shown{
			{0, Key{GVR: maps, View: "x"}, []string{"a", "b"}}, {1, Key{GVR: maps, View: "x", Namespace: "n"}, []string{"b"}}}, 2},
		"shards by a label": {[]shown{
			{0, Key{GVR: maps, Shards: one, ShardLabel: "l"}, []string{"a"}},
			{0, Key{GVR: maps, Shards: other, ShardLabel: "l"}, []string{"b"}}}, 2},
		"an object with the marks of two shards": {[]shown{
			{0, Key{GVR: maps, Shards: one}, []string{"a"}}, {0, Key{GVR: maps, Shards: other}, []string{"a", "b"}}}, 2},
		"shards of two views": {[]shown{
			{0, Key{GVR: maps, View: "x", Shards: one}, []string{"a"}}, {0, Key{GVR: maps, View: "x", Shards: other}, []string{"b"}},
			{1, Key{GVR: maps, View: "y", Shards: one}, []string{"a"}}, {1, Key{GVR: maps, View: "y", Shards: other}, []string{"b", "c"}}}, 3},
		"a shared watch": {[]shown{{0, Key{GVR: maps}, []string{"a"}}, {1, Key{GVR: maps}, nil}}, 1},
	} {
		all, made := make([]stores, 2), map[Key]*sharedWatch{}
		for i, s := range row.shown {
			if made[s.key] == nil {
				made[s.key] = watching(s.names...)
			}
			if all[s.downstream] == nil {
				all[s.downstream] = stores{}
			}
			all[s.downstream][part{namespace: fmt.Sprint(i)}] = &subscription{key: s.key, shared: made[s.key]}
		}
		c := &Cache{}
		c.sharded.Store(&sharded{downstreams: all})
		if n := c.CountDownstreams(); n != row.want {
			t.Errorf("%s: %d downstreams, want %d", reason, n, row.want)
		}
	}
}
