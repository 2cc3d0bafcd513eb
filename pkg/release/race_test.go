package release

import (
	"io"
	"net/http"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/corollary-dev/corollary/internal/bubble"
	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/kinds/discovered"
)

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// An upstream that is deleted between the list and the patch is not released before its deletion.before.
func TestReleaseOfWhatIsDeletedMeanwhile(t *testing.T) {
	bubble.Listen(t, "../../testdata/widgets/crd.yaml")
	ns := testkit.Namespace(t)
	widgets := schema.GroupVersionResource{Group: "tools.example.com", Version: "v1", Resource: "widgets"}
	testkit.Apply(t, ns, "{apiVersion: tools.example.com/v1, kind: Widget, metadata: {name: one, finalizers: [tools.example.com/cleanup]}}")
	cfg := rest.CopyConfig(testkit.Config(t))
	var once sync.Once
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodPatch {
				once.Do(func() { testkit.Delete(t, widgets, ns, "one") })
			}
			return next.RoundTrip(r)
		})
	})
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	source := must.Get(discovered.New(cfg)).In(t)
	f := &load.File{}
	f.Metadata.Name, f.Conventions.Finalizer, f.Conventions.FieldManager = "widgets", "tools.example.com/cleanup", "widgets"
	f.Watch.APIVersion, f.Watch.Kind = "tools.example.com/v1", "Widget"
	f.Deletion.Before = &config.Before{}
	f.Deletion.Before.APIVersion, f.Deletion.Before.Kind = "v1", "ConfigMap"
	r := &Releaser{Client: client, Kinds: source, Out: io.Discard, Here: true}
	err = r.Operator(t.Context(), f, "")
	if testkit.Find(t, widgets, ns, "one") == nil {
		t.Errorf("the upstream is gone before its deletion.before, error %v", err)
	}
}
