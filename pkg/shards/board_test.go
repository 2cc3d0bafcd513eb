package shards_test

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/corollary-dev/corollary/internal/bubble"
	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/shards"
)

// TestBoard: what processes write on a board at once is all there in the end, the first write among it. Reading makes
// no Lease.
func TestBoard(t *testing.T) {
	bubble.Run(t, nil, func(t *testing.T) {
		config := testkit.Config(t)
		config.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return roundTripper(func(r *http.Request) (*http.Response, error) {
				<-time.After(time.Millisecond) // so that all read before the first writes
				return next.RoundTrip(r)
			})
		})
		client := kubernetes.NewForConfigOrDie(config).CoordinationV1().Leases(testkit.Namespace(t))
		board := shards.Board{Client: client, Name: "board"}
		read := func() map[string]string {
			have := must.Get(board.Update(t.Context(), func(map[string]string) bool { return false })).In(t)
			return have
		}
		read()
		if _, err := client.Get(t.Context(), board.Name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("reading made the Lease, or: %v", err)
		}
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				for j := range 5 {
					if _, err := board.Update(t.Context(), func(entries map[string]string) bool {
						entries[fmt.Sprintf("%d-%d", i, j)] = "here"
						return true
					}); err != nil {
						t.Errorf("entry %d of process %d: %v", j, i, err)
					}
				}
			})
		}
		all.Wait()
		if have := read(); len(have) != 40 {
			t.Errorf("there are %d entries, want 40: %v", len(have), have)
		}
	})
}
