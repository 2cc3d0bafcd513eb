package backup_test

import (
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/pkg/backup"
	"github.com/corollary-dev/corollary/pkg/backup/archive"
)

const (
	many     = 5000
	eachSize = 8 << 10 // 40 MB in all
	mostHeap = 12 << 20
)

// server answers for an API server with many large objects, and looks at each request how much is held.
type server struct{ heap uint64 }

func (s *server) RoundTrip(r *http.Request) (*http.Response, error) {
	var stats runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&stats)
	s.heap = max(s.heap, stats.HeapAlloc)
	text := `{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "example.com/v1", "resources": [
		{"name": "things", "kind": "Thing", "namespaced": false}]}`
	if strings.HasSuffix(r.URL.Path, "/things") {
		text = page(r.URL.Query().Get("continue"), r.URL.Query().Get("limit"))
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(text)), Request: r}, nil
}

func page(token, limit string) string {
	from, _ := strconv.Atoi(token)
	size, err := strconv.Atoi(limit)
	if err != nil {
		size = many
	}
	next, items := "", []string{}
	for i := from; i < min(from+size, many); i++ {
		items = append(items, fmt.Sprintf(`{"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t%05d", "uid": "%d"}, "spec": %q}`,
			i, i, strings.Repeat("x", eachSize)))
	}
	if from+size < many {
		next = strconv.Itoa(from + size)
	}
	return fmt.Sprintf(`{"apiVersion": "example.com/v1", "kind": "ThingList", "metadata": {"resourceVersion": "7", "continue": %q}, "items": [%s]}`,
		next, strings.Join(items, ","))
}

// Neither a backup nor a plan holds more than a few pages of objects.
func TestMemory(t *testing.T) {
	s := &server{}
	config := &rest.Config{Host: "http://server", Transport: s, QPS: -1}
	client := must.Get(dynamic.NewForConfig(config)).In(t)
	b := &backup.Backup{Client: client, Kinds: []backup.Selection{{Resource: "things", Choices: []backup.Choice{{}},
		GVK: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Thing"}}}}
	path := filepath.Join(t.TempDir(), "backup.tar.zst")
	m, _, err := b.Run(t.Context(), path)
	if err != nil || m.Kinds[0].Objects != many {
		t.Fatalf("%+v: %v", m, err)
	}
	if s.heap > mostHeap {
		t.Errorf("a backup holds %d MB", s.heap>>20)
	}
	s.heap = 0
	r := &backup.Restore{Client: client, OnConflict: backup.Fail, FieldManager: "restorer"}
	if r.Discovery, err = discovery.NewDiscoveryClientForConfig(config); err != nil {
		t.Fatal(err)
	}
	if r.Archive, err = archive.Open(path, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Archive.Close() })
	plan, err := r.Plan(t.Context())
	if err != nil || plan.Kinds[0].Equal != many {
		t.Fatalf("%+v: %v", plan, err)
	}
	if s.heap > mostHeap {
		t.Errorf("a plan holds %d MB", s.heap>>20)
	}
}
