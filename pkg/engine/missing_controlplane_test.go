//go:build controlplane

package engine_test

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/kinds"
)

// An aggregated API that is unavailable says nothing about its objects: nothing is lost, a deletion waits, all else goes on.
func TestAggregatedAPIIsUnavailable(t *testing.T) {
	t.Parallel()
	services := schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}
	ns, other, name := testkit.Namespace(t), testkit.Namespace(t), testkit.Unique(t)
	source, err := kinds.Live(testkit.Config(t))
	if err != nil {
		t.Fatal(err)
	}
	testkit.Apply(t, "", `{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: v1.`+name+`.example.com}, spec: {
		group: `+name+`.example.com, version: v1, groupPriorityMinimum: 100, versionPriority: 100, insecureSkipTLSVerify: true,
		service: {namespace: `+ns+`, name: none}}}`)
	testkit.Eventually(t, patience, func() (bool, string) {
		_, err := source.Served(t.Context(), lates(name).GroupVersion().WithKind("Late"))
		return err != nil && !errors.Is(err, kinds.ErrUnknown), text(err)
	})
	start(t, testkit.Config(t), withLate(fill(widgetConfig, ns, name), name, other)+"deletion: {wait: true}\n").ready()
	testkit.Apply(t, ns, widget("a", `{data: {key: value}}`))
	testkit.Update(t, widgets, ns, "a", func(u *unstructured.Unstructured) { u.SetFinalizers([]string{finalizerOf(name)}) })
	waitData(t, ns, "a", "key", "value")
	waitsFor(t, widgets, ns, "a", "Waiting", "asking the API server for the kinds of "+name+".example.com/v1")
	testkit.Delete(t, widgets, ns, "a")
	waitsFor(t, widgets, ns, "a", "Unavailable", "late", name+".example.com/v1")
	waitGone(t, configMaps, ns, "a")
	testkit.Delete(t, services, "", "v1."+name+".example.com")
	waitGone(t, widgets, ns, "a")
}
