package convert

import (
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/kinds"
)

// triedMetadata are the fields of metadata that made objects have.
var triedMetadata = []string{"name", "generateName", "namespace", "labels", "annotations"}

// head gives an object its version, kind and metadata.
func (p *prover) head(obj map[string]any, version string) {
	g := p.generator
	obj["apiVersion"], obj["kind"] = schema.GroupVersion{Group: p.kind.Group, Version: version}.String(), p.kind.Kind
	metadata := map[string]any{"name": g.identifier(validation.DNS1123SubdomainMaxLength, validation.IsDNS1123Subdomain)}
	obj["metadata"] = metadata
	if p.namespaced {
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
			if acceptsMetadata(obj) {
				continue
			}
		}
		metadata[usual[0]] = map[string]any{usual[1]: usual[2]}
	}
	for _, at := range p.metadata {
		if g.random.IntN(2) == 0 {
			continue
		}
		if fieldpath.Set(obj, at, g.near()) != nil || !acceptsMetadata(obj) {
			fieldpath.Remove(obj, at)
		}
	}
}

// near is a text that is a literal, or close to one, or neither.
func (g *generator) near() string {
	texts := append([]string{"", "a", "7", "x y"}, g.literalTexts()...)
	return texts[g.random.IntN(len(texts))]
}

// identifier is a name of at most limit characters, with no errors: of a size, with a literal, or one that a regular expression matches.
func (g *generator) identifier(limit int, errors func(string) []string) string {
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

// store makes of an object what the API server stores in a version.
func store(v *kinds.Version, obj map[string]any) {
	v.Coerce(obj)
	dropEmptyMetadata(obj)
}

// dropEmptyMetadata removes labels and annotations where there are none, as the API server does.
func dropEmptyMetadata(obj map[string]any) {
	metadata, _ := obj["metadata"].(map[string]any)
	for _, name := range []string{"labels", "annotations"} {
		if texts, ok := metadata[name].(map[string]any); ok && len(texts) == 0 {
			delete(metadata, name)
		}
	}
}

// withMapsOf is an object with empty labels and annotations where it has none and another one has some: then they differ in these, not as
// a whole.
func withMapsOf(obj, other map[string]any) map[string]any {
	mine, _ := obj["metadata"].(map[string]any)
	theirs, _ := other["metadata"].(map[string]any)
	if mine == nil {
		return obj
	}
	metadata := maps.Clone(mine)
	for _, name := range []string{"labels", "annotations"} {
		if texts, ok := theirs[name].(map[string]any); ok && len(texts) > 0 && mine[name] == nil {
			metadata[name] = map[string]any{}
		}
	}
	with := maps.Clone(obj)
	with["metadata"] = metadata
	return with
}
