//go:build controlplane

package informers

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/informers/connections"
	"github.com/corollary-dev/corollary/pkg/informers/kept"
	"github.com/corollary-dev/corollary/pkg/shards"
)

func TestMain(m *testing.M) { testkit.Main(m, testkit.WithFeatureGates("ShardedListAndWatch=true")) }

// TestShardsOfAnAPIServerThatFilters: the API server sends a process the objects of its shards, in lists and watches,
// and no others; those of a shard that is dropped leave the cache at once.
func TestShardsOfAnAPIServerThatFilters(t *testing.T) {
	t.Parallel()
	const objects = 40
	ns := testkit.Namespace(t)
	create := func(from, to int) {
		for i := from; i < to; i++ {
			testkit.Apply(t, ns, fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c-%03d}\n", i))
		}
	}
	create(0, objects/2)
	connections := must.Get(connections.NewConnections(testkit.Config(t))).In(t)
	factory, set := NewFactory(connections), NewShardSet(shards.Ring{N: 4}, 0, 1)
	configMaps := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	filter := &shardFilter{set: set, keys: uidOf, byServer: true}
	sub, err := factory.subscribeTo(Key{GVR: configMaps, Namespace: ns, View: kept.PackedView, Shards: set}, filter, connections.Texts.Pack,
		cache.ResourceEventHandlerFuncs{}, func(Key, error) {})
	if err != nil {
		t.Fatal(err)
	}
	defer sub.close()
	shows := func(when string, of ...int) {
		t.Helper()
		var want []string
		for _, u := range testkit.List(t, configMaps, ns, "") {
			if slices.Contains(of, set.ring.Of(string(u.GetUID()))) {
				want = append(want, ns+"/"+u.GetName())
			}
		}
		testkit.Eventually(t, time.Minute, func() (bool, string) {
			got := slices.Sorted(slices.Values(sub.indexer().ListKeys()))
			return slices.Equal(got, slices.Sorted(slices.Values(want))), fmt.Sprintf("%s it shows %v, wanted %v", when, got, want)
		})
		if n := sub.shared.filter.foreign.Load(); n > 0 {
			t.Errorf("%s, the API server has sent %d objects of other shards", when, n)
		}
	}
	shows("after the first list", 0, 1)
	create(objects/2, objects)
	shows("after events", 0, 1)
	stale := map[string]any{}
	for _, key := range sub.indexer().ListKeys() {
		if obj := sub.get(key); set.ring.Of(uidOf(obj.(*kept.Packed))[0]) == 1 {
			stale[key] = obj
		}
	}
	factory.Drop(set, 1)
	shows("after shard 1 was dropped", 0)
	for key, obj := range stale { // as a list does that was under way
		must.Do(t, sub.indexer().Add(obj))
		if got := sub.get(key); got != nil {
			t.Errorf("%s is read though its shard was dropped", key)
		}
	}
	for _, obj := range sub.list() {
		if p := obj.(*kept.Packed); stale[ns+"/"+p.Name] != nil {
			t.Errorf("%s is listed though its shard was dropped", p.Name)
		}
	}
	for i := range objects { // the watch asks for shard 1 for some seconds more
		testkit.Apply(t, ns, fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c-%03d, labels: {changed: \"true\"}}\n", i))
	}
	shows("after a list that was under way, and changes of its objects", 0)
}
