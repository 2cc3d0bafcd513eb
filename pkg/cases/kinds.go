package cases

import (
	"context"
	"errors"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/operator/compile"
)

// caseKinds are the kinds of a case: those of files, the built-in ones, those that a config describes, and those in a
// config that no file defines, which can store anything.
type caseKinds struct {
	kinds.Source
	assumed map[schema.GroupVersionKind]*kinds.Kind
	// definitions are the definitions for the cluster.
	definitions []*unstructured.Unstructured
}

// readKinds reads the CustomResourceDefinitions in files and directories.
func readKinds(files []string) (*caseKinds, error) {
	source, err := kinds.Offline(files...)
	if err != nil {
		return nil, err
	}
	k := &caseKinds{Source: source, assumed: map[schema.GroupVersionKind]*kinds.Kind{}}
	if k.definitions, err = kinds.Definitions(files...); err != nil {
		return nil, err
	}
	for _, u := range k.definitions {
		simplify(u)
	}
	return k, nil
}

// describe adds the kinds that configs describe and no file defines. Objects that break the rules of a config can be
// stored, since there may// be such from before the rules.
func (k *caseKinds) describe(files []*load.File) {
	for _, d := range compile.DescribedKinds(files) {
		if _, err := k.Source.Kind(d.GVK); errors.Is(err, kinds.ErrUnknown) {
			k.definitions = append(k.definitions, &unstructured.Unstructured{Object: d.Open()})
		}
	}
	k.Source = compile.WithDescribed(files, k.Source)
}

// simplify removes from a definition what the in-memory cluster does not support and no case needs: an object is read
// at the version that it was written at, and by its name.
func simplify(definition *unstructured.Unstructured) {
	unstructured.RemoveNestedField(definition.Object, "spec", "conversion")
	versions, _, _ := unstructured.NestedFieldNoCopy(definition.Object, "spec", "versions")
	list, _ := versions.([]any)
	for _, item := range list {
		if version, ok := item.(map[string]any); ok {
			delete(version, "selectableFields")
		}
	}
}

// Kind implements kinds.Source: also for assumed kinds.
func (k *caseKinds) Kind(gvk schema.GroupVersionKind) (*kinds.Kind, error) {
	if assumed := k.assumed[gvk]; assumed != nil {
		return assumed, nil
	}
	return k.Source.Kind(gvk)
}

// Absent implements read.Kinds: nobody else creates objects.
func (k *caseKinds) Absent(context.Context, schema.GroupVersionKind) error { return nil }

// Served implements read.Kinds.
func (k *caseKinds) Served(_ context.Context, gvk schema.GroupVersionKind) (*kinds.Kind, error) {
	return k.Kind(gvk)
}

// assumingSource is a kinds.Source for configs: it assumes kinds that it does not know.
type assumingSource struct{ *caseKinds }

// Kind implements kinds.Source.
func (a assumingSource) Kind(gvk schema.GroupVersionKind) (*kinds.Kind, error) {
	kind, err := a.caseKinds.Kind(gvk)
	if !errors.Is(err, kinds.ErrUnknown) || gvk.Group == "" || gvk.Version == "" || gvk.Kind == "" {
		return kind, err
	}
	gvr, _ := meta.UnsafeGuessKindToResource(gvk)
	kind = &kinds.Kind{GVK: gvk, GVR: gvr, Namespaced: true, HasStatus: true}
	a.assumed[gvk] = kind
	a.definitions = append(a.definitions, definitionOf(kind))
	return kind, nil
}

// definitionOf returns a definition of a kind that can store anything.
func definitionOf(kind *kinds.Kind) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": kind.GVR.GroupResource().String()},
		"spec": map[string]any{"group": kind.GVK.Group, "scope": "Namespaced",
			"names": map[string]any{"kind": kind.GVK.Kind, "plural": kind.GVR.Resource,
				"singular": strings.ToLower(kind.GVK.Kind)},
			"versions": []any{map[string]any{"name": kind.GVK.Version, "served": true, "storage": true,
				"subresources": map[string]any{"status": map[string]any{}},
				"schema": map[string]any{"openAPIV3Schema": map[string]any{
					"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
			}}},
	}}
}
