package informers

import (
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
)

// TestWatchIsCut: a watch that goes on before the time of the one before is over was cut, however little of that was
// left; one that ends in its time was not, and costs no request.
func TestWatchIsCut(t *testing.T) {
	t.Parallel()
	for seconds, want := range map[int64]bool{3600: true, 29: true, 20: true, 0: false} {
		key := Key{GVR: schema.GroupVersionResource{Version: "v1", Resource: "things"}}
		kinds := map[schema.GroupVersionResource]string{key.GVR: "ThingList"}
		client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds)
		cut := false
		shared := &sharedWatch{users: map[*subscription]struct{}{}}
		shared.users[&subscription{onResult: func(_ Key, err error) { cut = cut || errors.Is(err, ErrCut) }}] = struct{}{}
		watches := listWatch(client.Resource(key.GVR), key, shared, func() {})
		for range 2 {
			events, err := watches.WatchWithContext(t.Context(), metav1.ListOptions{TimeoutSeconds: &seconds, ResourceVersion: "1"})
			if err != nil {
				t.Fatal(err)
			}
			events.Stop()
		}
		if cut != want {
			t.Errorf("one of %d s that is followed by another at once: cut is %t", seconds, cut)
		}
		lists := 0
		for _, a := range client.Actions() {
			if a.GetVerb() == "list" {
				lists++
			}
		}
		if want != (lists == 1) {
			t.Errorf("one of %d s that is followed by another at once: %d lists", seconds, lists)
		}
	}
}
