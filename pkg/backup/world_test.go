package backup_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/corollary-dev/corollary/internal/bubble"
	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/backup"
	"github.com/corollary-dev/corollary/pkg/backup/archive"
)

const patience = time.Minute

var (
	definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	configMaps  = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
)

const ownedBy, pausedBy = "example.com/owner", "example.com/paused"

// world is a custom kind and two namespaces of one test. Things own ConfigMaps in their namespace by reference, and in
// the other one by annotation.
type world struct {
	t         *testing.T
	group     string
	ns, other string
}

// newWorld makes a world on an API server in memory.
func newWorld(t *testing.T) *world {
	t.Helper()
	bubble.Serve(t)
	return worldOn(t)
}

// worldOn makes a world on the API server of the test.
func worldOn(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, group: testkit.Unique(t) + ".example.com", ns: testkit.Namespace(t), other: testkit.Namespace(t)}
	testkit.InstallCRDs(t, w.crd("Namespaced", "v1"))
	return w
}

func (w *world) name() string { return "things." + w.group }

func (w *world) crd(scope string, versions ...string) string {
	text := "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: " + w.name() + "}\nspec:\n  group: " +
		w.group + "\n  scope: " + scope + "\n  names: {plural: things, singular: thing, kind: Thing, listKind: ThingList}\n  versions:\n"
	for i, v := range versions {
		text += fmt.Sprintf("    - {name: %s, served: true, storage: %t, subresources: {status: {}}, schema: {openAPIV3Schema: {type: object, "+
			"x-kubernetes-preserve-unknown-fields: true}}}\n", v, i == 0)
	}
	return text
}

func (w *world) things() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: w.group, Version: "v1", Resource: "things"}
}

// apply applies an object as an operator does.
func (w *world) apply(gvr schema.GroupVersionResource, ns string, object map[string]any) *unstructured.Unstructured {
	w.t.Helper()
	u := &unstructured.Unstructured{Object: object}
	u = must.Get(testkit.Dynamic(w.t).Resource(gvr).Namespace(ns).
		Apply(w.t.Context(), u.GetName(), u, metav1.ApplyOptions{FieldManager: "operator"})).In(w.t)
	return u
}

// thing makes an upstream with its status and two downstreams.
func (w *world) thing(name string) {
	w.t.Helper()
	u := w.apply(w.things(), w.ns, map[string]any{"apiVersion": w.group + "/v1", "kind": "Thing",
		"metadata": map[string]any{"name": name, "finalizers": []any{"example.com/cleanup"}},
		"spec":     map[string]any{"big": int64(9007199254740993), "text": "\u2028<&>"}})
	near := w.configMap(w.ns, name, map[string]any{"ownerReferences": []any{map[string]any{
		"apiVersion": w.group + "/v1", "kind": "Thing", "name": name, "uid": string(u.GetUID()), "controller": true}}})
	far := w.configMap(w.other, name, map[string]any{"annotations": map[string]any{ownedBy: w.ns + "/" + name + "/" + string(u.GetUID())}})
	status := must.Get(json.Marshal(map[string]any{"status": map[string]any{"observedGeneration": u.GetGeneration(), "downstreams": []any{
		map[string]any{"name": name, "namespace": w.ns, "uid": near.GetUID()},
		map[string]any{"name": name, "namespace": w.other, "uid": far.GetUID()}}}})).In(w.t)
	testkit.Patch(w.t, w.things(), w.ns, name, "operator", string(status), "status")
}

func (w *world) configMap(ns, name string, metadata map[string]any) *unstructured.Unstructured {
	w.t.Helper()
	metadata["name"], metadata["labels"] = name, map[string]any{"example.com/managed-by": w.ns}
	return w.apply(configMaps, ns, map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata,
		"data": map[string]any{"k": "v"}})
}

func (w *world) operators() []archive.Operator {
	return []archive.Operator{{Name: "operator", Upstream: w.name(), Pause: pausedBy, Owners: []string{ownedBy}}}
}

func (w *world) backup(config *rest.Config) *backup.Backup {
	client := must.Get(dynamic.NewForConfig(config)).In(w.t)
	return &backup.Backup{Client: client, Operators: w.operators(), Kinds: []backup.Selection{
		{GVK: w.things().GroupVersion().WithKind("Thing"), Resource: "things", Namespaced: true, HasStatus: true, Custom: true,
			Choices: []backup.Choice{{}}},
		{GVK: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Resource: "configmaps", Namespaced: true,
			Namespaces: []string{w.other, w.ns},
			Choices:    []backup.Choice{{Selector: labels.SelectorFromSet(labels.Set{"example.com/managed-by": w.ns}), Owned: true}}},
	}}
}

func (w *world) save(output string) *archive.Manifest {
	w.t.Helper()
	m, _, err := w.backup(testkit.Config(w.t)).Run(w.t.Context(), output)
	if err != nil {
		w.t.Fatal(err)
	}
	return m
}

// restore opens a backup and prepares to restore it.
func (w *world) restore(config *rest.Config, path, onConflict string) *backup.Restore {
	w.t.Helper()
	a := must.Get(archive.Open(path, nil)).In(w.t)
	w.t.Cleanup(func() { _ = a.Close() })
	client := must.Get(dynamic.NewForConfig(config)).In(w.t)
	found := must.Get(discovery.NewDiscoveryClientForConfig(config)).In(w.t)
	return &backup.Restore{Client: client, Discovery: found, Archive: a, Operators: w.operators(), OnConflict: onConflict,
		FieldManager: "restorer"}
}

func run(ctx context.Context, r *backup.Restore) (*backup.Plan, *backup.Result, error) {
	plan, err := r.Plan(ctx)
	if err != nil {
		return nil, nil, err
	}
	result, err := r.Run(ctx, plan)
	return plan, result, err
}

// deleteAll deletes the objects, and with definition the kind too.
func (w *world) deleteAll(definition bool) {
	w.t.Helper()
	for _, u := range testkit.List(w.t, w.things(), w.ns, "") {
		testkit.Patch(w.t, w.things(), w.ns, u.GetName(), "test", `{"metadata": {"finalizers": null}}`)
		testkit.Delete(w.t, w.things(), w.ns, u.GetName())
	}
	for _, ns := range []string{w.ns, w.other} {
		for _, u := range testkit.List(w.t, configMaps, ns, "example.com/managed-by") {
			testkit.Delete(w.t, configMaps, ns, u.GetName())
		}
	}
	if definition {
		testkit.Delete(w.t, definitions, "", w.name())
		testkit.Eventually(w.t, patience, func() (bool, string) {
			_, err := testkit.Dynamic(w.t).Resource(w.things()).List(w.t.Context(), metav1.ListOptions{})
			return apierrors.IsNotFound(err) && testkit.Find(w.t, definitions, "", w.name()) == nil, fmt.Sprint(err)
		})
	}
}

// content is what an object is, without what the API server sets, and with the fields that its managers own.
func content(t *testing.T, u *unstructured.Unstructured) string {
	t.Helper()
	u = u.DeepCopy()
	managers, _, _ := unstructured.NestedSlice(u.Object, "metadata", "managedFields")
	owned := map[string]any{}
	for _, v := range managers {
		entry := v.(map[string]any)
		delete(entry, "time")
		owned[fmt.Sprint(entry["manager"], entry["operation"], entry["subresource"])] = entry
	}
	for _, field := range []string{"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields"} {
		unstructured.RemoveNestedField(u.Object, "metadata", field)
	}
	text := must.Get(json.Marshal([]any{u.Object, owned})).In(t)
	return string(text)
}

// contents are all objects of the test, with names in the place of their uids.
func (w *world) contents() string {
	w.t.Helper()
	var all []string
	var uids []string
	for _, at := range []struct {
		gvr schema.GroupVersionResource
		ns  string
	}{{w.things(), w.ns}, {configMaps, w.ns}, {configMaps, w.other}} {
		for _, u := range testkit.List(w.t, at.gvr, at.ns, "") {
			if u.GetName() == "kube-root-ca.crt" {
				continue
			}
			uids = append(uids, string(u.GetUID()), "uid of "+at.gvr.Resource+" "+at.ns+"/"+u.GetName())
			all = append(all, content(w.t, &u))
		}
	}
	return strings.NewReplacer(uids...).Replace(strings.Join(all, "\n"))
}
