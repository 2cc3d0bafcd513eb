package testkit_test

import (
	"maps"
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/corollary-dev/corollary/internal/bubble"
	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/internal/testkit"
)

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

const configMap = `
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {color: green}
`

// use sends one request of each kind, an apply twice.
func use(t *testing.T, client dynamic.Interface, ns string) {
	t.Helper()
	resource := client.Resource(configMaps).Namespace(ns)
	object := testkit.Parse(t, configMap)
	force := metav1.ApplyOptions{FieldManager: "someone", Force: true}
	must.Get(resource.Apply(t.Context(), "settings", object, force)).In(t)
	force.DryRun = []string{metav1.DryRunAll}
	must.Get(resource.Apply(t.Context(), "settings", object, force)).In(t)
	must.Get(resource.List(t.Context(), metav1.ListOptions{})).In(t)
	if _, err := resource.Get(t.Context(), "absent", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	watcher := must.Get(resource.Watch(t.Context(), metav1.ListOptions{})).In(t)
	watcher.Stop()
}

// used is the requests of use.
var used = map[string]int{"PATCH configmaps": 2, "LIST configmaps": 1, "GET configmaps": 1, "WATCH configmaps": 1}

func TestCounter(t *testing.T) {
	bubble.Run(t, nil, func(t *testing.T) {
		counter := testkit.NewCounter()
		client := newClient(t, counter.Wrap(testkit.Config(t)))
		use(t, client, testkit.Namespace(t))
		if got := counter.Snapshot(); !maps.Equal(got, used) {
			t.Errorf("counted %v instead of %v", got, used)
		}
		if total, mutating := counter.Total(), counter.Mutating(); total != 4 || mutating != 1 {
			t.Errorf("counted %d requests, %d of them mutating, instead of 4 and 1", total, mutating)
		}
		first := counter.Requests()[0]
		if !first.Apply || first.DryRun || first.Name != "settings" || first.Code != http.StatusCreated {
			t.Errorf("the first request is recorded as %+v", first)
		}
		counter.Reset()
		if got := counter.Snapshot(); len(got) != 0 {
			t.Errorf("counted %v after a reset", got)
		}
	})
}

func newClient(t *testing.T, config *rest.Config) dynamic.Interface {
	t.Helper()
	client := must.Get(dynamic.NewForConfig(config)).In(t)
	return client
}
