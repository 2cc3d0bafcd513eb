package kinds

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// files is the Source that Offline returns.
type files struct {
	kinds map[schema.GroupVersionKind]*Kind
	where map[schema.GroupVersionKind]string // the file that a custom kind comes from
	read  bool                               // whether any file was read
}

// Offline returns a Source without an API server: custom kinds from CustomResourceDefinitions in the given files and
// directories (YAML or JSON, recursively, without names that begin with a dot), built-in kinds as in BuiltinVersion.
// The error joins one for each invalid document, and for each kind with two different definitions.
func Offline(dirsOrFiles ...string) (Source, error) {
	f := &files{
		kinds: maps.Clone(builtins()),
		where: map[schema.GroupVersionKind]string{},
		read:  len(dirsOrFiles) > 0,
	}
	docs, errs := readDocuments(dirsOrFiles)
	for _, doc := range docs {
		if err := f.add(doc); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", doc.position, err))
		}
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return f, nil
}

// add adds the kinds of one document, if it is a CustomResourceDefinition.
func (f *files) add(doc document) error {
	crd, err := doc.crd()
	if crd == nil || err != nil {
		return err
	}
	return f.define(crd, doc.position)
}

// OfflineFrom is Offline for existing definitions; where is their origin for messages.
func OfflineFrom(crds []*apiextensionsv1.CustomResourceDefinition, where string) (Source, error) {
	f := &files{kinds: maps.Clone(builtins()), where: map[schema.GroupVersionKind]string{}, read: true}
	for _, crd := range crds {
		if err := f.define(crd, where); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// define adds the kinds of a definition.
func (f *files) define(crd *apiextensionsv1.CustomResourceDefinition, where string) error {
	found, err := Defined(crd)
	if err != nil {
		return fmt.Errorf("CustomResourceDefinition %q: %w", crd.Name, err)
	}
	for _, k := range found {
		if other, twice := f.where[k.GVK]; twice && !reflect.DeepEqual(f.kinds[k.GVK], k) {
			return fmt.Errorf("CustomResourceDefinition %q: %s %s is described differently in %s: leave one out",
				crd.Name, k.GVK.GroupVersion(), k.GVK.Kind, other)
		}
		f.kinds[k.GVK], f.where[k.GVK] = k, where
	}
	return nil
}

// Kind implements Source. The error is always an *UnknownError.
func (f *files) Kind(gvk schema.GroupVersionKind) (*Kind, error) {
	if k, ok := f.kinds[gvk]; ok {
		if k == builtins()[gvk] {
			return typed(k), nil
		}
		return k, nil
	}
	have := slices.SortedFunc(maps.Keys(f.kinds), func(a, b schema.GroupVersionKind) int {
		return strings.Compare(a.String(), b.String())
	})
	unknown := &UnknownError{GVK: gvk, Where: "the set of built-in kinds", Fix: Nearby(gvk, have)}
	if f.read {
		unknown.Where = "the set of built-in kinds and given CustomResourceDefinitions"
	}
	if unknown.Fix == "" {
		unknown.Fix = namesakes(gvk, have) + "give the file of its CustomResourceDefinition with --crds"
	}
	return nil, unknown
}

// namesakes returns kinds of this name in other groups for a message; "" if there is none. The kinds are sorted; only
// the first version of each group is used.
func namesakes(asked schema.GroupVersionKind, have []schema.GroupVersionKind) string {
	var groups []string
	last := ""
	for _, gvk := range have {
		if gvk.Kind == asked.Kind && (len(groups) == 0 || gvk.Group != last) {
			groups, last = append(groups, gvk.GroupVersion().String()), gvk.Group
		}
	}
	if len(groups) == 0 {
		return ""
	}
	return "there is one in " + strings.Join(groups, ", ") + "; if this is not intended, "
}
