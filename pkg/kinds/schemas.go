package kinds

import (
	"bytes"
	"compress/gzip"
	_ "embed" // the schemas
	"encoding/json"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/cel/openapi/resolver"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// packed has the schemas of the kinds that an API server of one Kubernetes version serves by default, as a bundle.
// TestServerSchemas compares it with an API server, and writes it with -update.
//
//go:embed schemas.json.gz
var packed []byte

// bundle has the schemas of built-in kinds without unused parts. They refer to each other by name.
type bundle struct {
	Version string                     `json:"version"` // of Kubernetes: 1.36
	Kinds   map[string]string          `json:"kinds"`   // the name of its schema, by group/version/kind
	Schemas map[string]json.RawMessage `json:"schemas"`
}

// builtinSchemas is parsed on first use. This cannot fail: a test parses it.
var builtinSchemas = sync.OnceValue(func() *bundle {
	b := &bundle{}
	in, err := gzip.NewReader(bytes.NewReader(packed))
	if err == nil {
		err = json.NewDecoder(in).Decode(b)
	}
	if err != nil {
		panic(fmt.Sprintf("reading the embedded schemas: %v", err))
	}
	return b
})

// BuiltinVersion returns the Kubernetes version of the schemas of built-in kinds in Offline, such as 1.36.
func BuiltinVersion() string { return builtinSchemas().Version }

func kindKey(gvk schema.GroupVersionKind) string {
	return gvk.GroupVersion().String() + "/" + gvk.Kind
}

// schemaOf returns a kind's schema with references resolved as the API server's reader resolves them.
func (b *bundle) schemaOf(gvk schema.GroupVersionKind) (*spec.Schema, error) {
	name, ok := b.Kinds[kindKey(gvk)]
	if !ok {
		return nil, fmt.Errorf("the schema of %s %s is not known offline: Kubernetes %s does not serve it by default",
			gvk.GroupVersion(), gvk.Kind, b.Version)
	}
	read := map[string]*spec.Schema{}
	s, err := resolver.PopulateRefs(func(ref string) (*spec.Schema, bool) {
		if s := read[ref]; s != nil {
			return s, true
		}
		s := &spec.Schema{}
		if text, ok := b.Schemas[ref]; !ok || json.Unmarshal(text, s) != nil {
			return nil, false
		}
		read[ref] = s
		return s, true
	}, name)
	if err != nil {
		return nil, fmt.Errorf("reading the embedded schema of %s %s: %w", gvk.GroupVersion(), gvk.Kind, err)
	}
	return s, nil
}

// typedBuiltins are the built-in kinds that were requested, with their schemas.
var typedBuiltins sync.Map // of schema.GroupVersionKind to *Kind

// typed returns a built-in kind with its schema, or with the reason why it has none.
func typed(k *Kind) *Kind {
	if known, ok := typedBuiltins.Load(k.GVK); ok {
		return known.(*Kind)
	}
	whole := *k
	whole.Schema, whole.SchemaErr = builtinSchemas().schemaOf(k.GVK)
	known, _ := typedBuiltins.LoadOrStore(k.GVK, &whole)
	return known.(*Kind)
}

// BuiltinSchema returns the schema of a built-in kind, as Offline does.
func BuiltinSchema(gvk schema.GroupVersionKind) (*spec.Schema, error) {
	k := builtins()[gvk]
	if k == nil {
		return nil, &UnknownError{GVK: gvk, Where: "the set of built-in kinds"}
	}
	k = typed(k)
	return k.Schema, k.SchemaErr
}

// ServedByDefault reports whether an API server of BuiltinVersion serves a built-in kind by default.
func ServedByDefault(gvk schema.GroupVersionKind) bool {
	_, ok := builtinSchemas().Kinds[kindKey(gvk)]
	return ok
}
