//go:build controlplane

package drift_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/internal/golden"
	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/canonical"
	"github.com/corollary-dev/corollary/pkg/drift"
)

func TestMain(m *testing.M) { testkit.Main(m, testkit.WithCRDs("testdata/crds")) }

// TestServerDocuments applies each document to a real API server: if nothing is normalized, the projection is what was
// applied. With -update it records the responses for the tests without a server.
func TestServerDocuments(t *testing.T) {
	ns := testkit.Namespace(t)
	for _, d := range documents(t) {
		t.Run(d.name, func(t *testing.T) {
			live := apply(t, ns, manager, d.desired)
			if golden.Updating() {
				record(t, d.name, live)
			}
			checkProjection(t, d, live)
			again := apply(t, ns, manager, d.desired)
			if a, b := sum(t, live), sum(t, again); a != b {
				t.Errorf("%s: the second apply returns projection %s, the first %s", d.reason, b, a)
			}
		})
	}
}

func sum(t *testing.T, u *unstructured.Unstructured) canonical.Sum {
	t.Helper()
	v := drift.View{Manager: manager}
	l := v.Live(u)
	return l.P
}

func record(t *testing.T, name string, u *unstructured.Unstructured) {
	t.Helper()
	var out bytes.Buffer
	text := must.Get(json.Marshal(u.Object)).In(t)
	must.Do(t, json.Indent(&out, text, "", " "))
	must.Do(t, os.WriteFile(filepath.Join("testdata", "live", name+".json"), append(out.Bytes(), '\n'), 0o644))
}
