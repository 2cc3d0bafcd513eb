package generator

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/kinds"
)

// New prepares the making of objects.
func New(o Options) *Generator {
	g := &Generator{
		kind: o.Kind, namespaced: o.Namespaced, metadata: o.Metadata,
		random:       rand.New(rand.NewPCG(o.Seed, 1)),
		distinctions: distinctionsOf(o.Literals, o.Versions),
		unknown:      map[string]*structuralschema.Structural{},
	}
	for _, v := range o.Others {
		g.collect(v.Structural, 0)
	}
	return g
}

// collect notes the fields in a schema by name.
func (g *Generator) collect(s *structuralschema.Structural, depth int) {
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) { // one seed gives the same objects
		property := s.Properties[name]
		if depth > 0 && g.unknown[name] == nil {
			g.unknown[name] = &property
		}
		g.collect(&property, depth+1)
	}
	if s.Items != nil {
		g.collect(s.Items, depth+1)
	}
}

// IsHeads tosses a coin.
func (g *Generator) IsHeads() bool { return g.random.IntN(2) == 0 }

// Next makes the next object of a version: with values at the places that are chosen, or a random one where chosen is
// nil.
func (g *Generator) Next(ctx context.Context, v *kinds.Version, chosen map[string]int) (obj map[string]any, ok bool) {
	g.chosen, g.uniform = chosen, chosen == nil && g.random.IntN(10) == 0
	g.last = g.IsHeads()
	return g.Make(ctx, v)
}

// With makes an object with the values that are given, by place.
func (g *Generator) With(ctx context.Context, v *kinds.Version, given map[string]any) (obj map[string]any, ok bool) {
	g.chosen, g.uniform, g.given = nil, true, given
	defer func() { g.given = nil }()
	return g.Make(ctx, v)
}

// Plain makes an object without anything chosen or unknown.
func (g *Generator) Plain(ctx context.Context, v *kinds.Version) (obj map[string]any, ok bool) {
	other := &Generator{
		kind: g.kind, namespaced: g.namespaced, metadata: g.metadata, random: g.random, values: g.values,
		distinctions: g.distinctions,
	}
	if obj, ok = other.value(v.Structural, "", 0).(map[string]any); !ok {
		return nil, false
	}
	return obj, g.stored(ctx, v, obj)
}

// Make makes an object as the API server would have stored it. ok is false where it would have refused it.
func (g *Generator) Make(ctx context.Context, v *kinds.Version) (obj map[string]any, ok bool) {
	obj, ok = g.value(v.Structural, "", 0).(map[string]any)
	return obj, ok && g.stored(ctx, v, obj)
}

// stored makes of an object what the API server stores, and reports whether it takes it.
func (g *Generator) stored(ctx context.Context, v *kinds.Version, obj map[string]any) bool {
	g.head(obj, v.Name)
	Store(v, obj)
	return len(v.Validate(ctx, obj)) == 0
}

// head gives an object its version, kind and metadata.
func (g *Generator) head(obj map[string]any, version string) {
	obj["apiVersion"], obj["kind"] = schema.GroupVersion{Group: g.kind.Group, Version: version}.String(), g.kind.Kind
	metadata := map[string]any{"name": g.identifier(validation.DNS1123SubdomainMaxLength, validation.IsDNS1123Subdomain)}
	obj["metadata"] = metadata
	if g.namespaced {
		metadata["namespace"] = g.identifier(validation.DNS1123LabelMaxLength, validation.IsDNS1123Label)
	}
	if g.random.IntN(8) == 0 {
		metadata["generateName"] = g.identifier(validation.DNS1123LabelMaxLength, validation.IsDNS1123Label) + "-"
	}
	for _, usual := range [][3]string{{"labels", "app", "a"}, {"annotations", "note", "kept"}} {
		switch g.random.IntN(4) {
		case 0:
			continue
		case 1:
			metadata[usual[0]] = map[string]any{g.key(): g.near()}
			if kinds.AcceptsMetadata(obj) {
				continue
			}
		}
		metadata[usual[0]] = map[string]any{usual[1]: usual[2]}
	}
	for _, at := range g.metadata {
		if g.random.IntN(2) == 0 {
			continue
		}
		if fieldpath.Set(obj, at, g.near()) != nil || !kinds.AcceptsMetadata(obj) {
			fieldpath.Remove(obj, at)
		}
	}
}

// near is a text that is a literal, or close to one, or neither.
func (g *Generator) near() string {
	texts := append([]string{"", "a", "7", "x y"}, g.literalTexts()...)
	return texts[g.random.IntN(len(texts))]
}

// identifier is a name of at most limit characters, with no errors: of a size, with a literal, or one that a regular
// expression matches.
func (g *Generator) identifier(limit int, errors func(string) []string) string {
	text := "a"
	switch choice := g.random.IntN(10); {
	case choice == 0:
		text = strings.Repeat("n", max(1, g.sizeFrom(g.random, limit)))
	case choice <= 3 && len(g.texts) > 0:
		literal := g.texts[g.random.IntN(len(g.texts))]
		text = []string{literal, literal + "a", "a" + literal, "a" + literal + "a"}[g.random.IntN(4)]
	case choice == 4 && len(g.patterns) > 0:
		var b strings.Builder
		g.match(g.patterns[g.random.IntN(len(g.patterns))], &b, 0)
		text = b.String()
	case choice == 5:
		text = g.textFrom()
	case choice == 6:
		text = []string{"a-b", "a.b", "a1", "0", "kube-system", "a-0"}[g.random.IntN(6)]
	}
	if len(errors(text)) > 0 {
		return "a"
	}
	return text
}

// Store makes of an object what the API server stores in a version.
func Store(v *kinds.Version, obj map[string]any) {
	v.Coerce(obj)
	DropEmptyMetadata(obj)
}

// DropEmptyMetadata removes labels and annotations where there are none, as the API server does.
func DropEmptyMetadata(obj map[string]any) {
	metadata, _ := obj["metadata"].(map[string]any)
	for _, name := range []string{"labels", "annotations"} {
		if texts, ok := metadata[name].(map[string]any); ok && len(texts) == 0 {
			delete(metadata, name)
		}
	}
}
