package informers

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/operator/desired"
	"github.com/corollary-dev/corollary/pkg/operator/marks"
)

// Owners share buckets, and each finds its own objects.
func TestOwnedBy(t *testing.T) {
	const owners = 2 * buckets
	options := cache.SharedIndexInformerOptions{Indexers: indexers}
	informer := cache.NewSharedIndexInformerWithOptions(&cache.ListWatch{}, &drift.Live{}, options)
	c := NewCache(&desired.Renderer{Downstreams: make([]*desired.Downstream, 1)})
	c.now().downstreams[0] = stores{part{}: &subscription{shared: &sharedWatch{informer: informer}}}
	uid := func(i int) types.UID { return types.UID(fmt.Sprintf("uid-%d", i)) }
	for i := range owners {
		for n := range i % 3 {
			live := &drift.Live{Identity: drift.Identity{Name: fmt.Sprintf("object-%d-%d", i, n)},
				Owners: []drift.OwnerRef{{UID: "another"}, {UID: uid(i)}}}
			if i%2 == 1 {
				owner := &unstructured.Unstructured{}
				owner.SetUID(uid(i))
				owner.SetName("owner")
				live.Owners, live.OwnerMark = nil, marks.OwnerMark(owner)
			}
			if err := informer.GetIndexer().Add(live); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i := range owners {
		if found := c.OwnedBy(0, uid(i)); len(found) != i%3 {
			t.Fatalf("owner %d has %d objects, want %d", i, len(found), i%3)
		}
	}
	if found := c.OwnedBy(0, "nobody"); len(found) > 0 {
		t.Errorf("nobody has %d objects", len(found))
	}
}
