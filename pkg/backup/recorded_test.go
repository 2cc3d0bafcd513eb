package backup_test

import (
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/pkg/backup"
	"github.com/corollary-dev/corollary/pkg/backup/archive"
)

// A namespace that a status names and that may not be listed does not keep the rest from being written: anybody may
// have written the status.
func TestRecordedNamespaceIsForbidden(t *testing.T) {
	t.Parallel()
	const thing = `{"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t", "uid": "1"}, "spec": {}}`
	const part = `{"apiVersion": "example.com/v1", "kind": "Part", "metadata": {"name": "p", "namespace": "one", "uid": "2",
		"ownerReferences": [{"apiVersion": "example.com/v1", "kind": "Thing", "name": "t", "uid": "1"}]}, "spec": {}}`
	config := &rest.Config{Host: "http://server", QPS: -1, Transport: tripper(func(r *http.Request) (*http.Response, error) {
		code, text := http.StatusOK, `{"apiVersion": "example.com/v1", "kind": "List", "metadata": {"resourceVersion": "7"}, "items": [`
		switch {
		case strings.HasSuffix(r.URL.Path, "/things"):
			text += thing + "]}"
		case strings.HasSuffix(r.URL.Path, "/namespaces/one/parts"):
			text += part + "]}"
		default:
			code, text = http.StatusForbidden, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "message": "no", "code": 403}`
		}
		return &http.Response{StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}},
			Body: io.NopCloser(strings.NewReader(text)), Request: r}, nil
	})}
	client := must.Get(dynamic.NewForConfig(config)).In(t)
	of := func(kind string) schema.GroupVersionKind {
		return schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: kind}
	}
	parts := func(namespace string) backup.Selection {
		return backup.Selection{Resource: "parts", Namespaced: true, Namespaces: []string{namespace}, Choices: []backup.Choice{{Owned: true}},
			GVK: of("Part")}
	}
	for _, asked := range []bool{true, false} {
		b := &backup.Backup{Client: client, Kinds: []backup.Selection{{Resource: "things", Choices: []backup.Choice{{}}, GVK: of("Thing")}}}
		if asked {
			b.Kinds = append(b.Kinds, parts("one"))
		}
		b.Recorded = func(*unstructured.Unstructured) []backup.Selection {
			return []backup.Selection{parts("one"), parts("two")}
		}
		path := filepath.Join(t.TempDir(), "backup")
		m, _, err := b.Run(t.Context(), path)
		if err != nil {
			t.Errorf("asked %v: %v", asked, err)
			continue
		}
		if len(m.Kinds) != 2 || m.Kinds[1].Objects != 1 || len(b.Unread) != 1 {
			t.Errorf("asked %v: kinds %+v, files %v, unread %v", asked, m.Kinds, m.Files, b.Unread)
		}
		a, err := archive.Open(path, nil)
		if err != nil {
			t.Fatalf("asked %v: %v", asked, err)
		}
		_ = a.Close()
	}
}
