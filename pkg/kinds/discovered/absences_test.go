package discovered_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/pkg/kinds/discovered"
)

// TestRequestsThatHang: a request for one kind that hangs does not block callers that need another kind, and ends with
// its own context.
func TestRequestsThatHang(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{}, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/apis/hangs.example.com") {
			asked <- struct{}{}
			<-r.Context().Done()
			return
		}
		http.NotFound(w, r)
	}))
	defer server.Close()
	cluster := must.Get(discovered.New(&rest.Config{Host: server.URL})).In(t)
	absences := discovered.NewAbsences(cluster, time.Minute)
	ctx, cancel := context.WithCancel(t.Context())
	hangs, other := make(chan error, 1), make(chan error, 1)
	go func() {
		hangs <- absences.Absent(ctx, schema.GroupVersionKind{Group: "hangs.example.com", Version: "v1", Kind: "Thing"})
	}()
	<-asked
	go func() {
		other <- absences.Absent(t.Context(), schema.GroupVersionKind{Group: "other.example.com", Version: "v1", Kind: "Thing"})
	}()
	if err := <-other; err != nil {
		t.Errorf("the question about another kind: %v", err)
	}
	cancel()
	if err := <-hangs; err == nil {
		t.Error("the question that hangs found out anything")
	}
}
