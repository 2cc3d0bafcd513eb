package prove

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/internal/testkit"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/pkg/config/conversion"
	"github.com/corollary-dev/corollary/pkg/convert"
	"github.com/corollary-dev/corollary/pkg/convert/generator"
	"github.com/corollary-dev/corollary/pkg/convert/places"
	"github.com/corollary-dev/corollary/pkg/kinds"
)

// Whoever edits one field of an object in another version changes nothing else of it, whatever the object and the edit:
// neither what the versions share, nor what only the one or the other has.
func TestEditInAnotherVersion(t *testing.T) {
	t.Parallel()
	c := edited(t)
	for _, pair := range [][2]string{{"v1", "v1beta1"}, {"v1beta1", "v1"}} {
		e := &editor{
			prover: &prover{Converter: c, from: c.Version(pair[0]), via: c.Version(pair[1]), generator: makerFor(c, 1, c.Version(pair[1]))},
			edits:  makerFor(c, 2, c.Version(pair[0])),
			random: rand.New(rand.NewPCG(1, 1)),
		}
		for e.tried < 300 {
			if problem := e.edit(t.Context()); problem != "" {
				t.Fatal(problem)
			}
		}
	}
}

// edited are two versions that differ in every way that preserve is for.
func edited(t *testing.T) *convert.Converter {
	t.Helper()
	versions := must.Get(kinds.Versions(testkit.Definition(t, "testdata/edited/crd.yaml"))).In(t)
	c, problems := convert.Compile(&conversion.Conversion{Hub: "v1", Spokes: []conversion.Spoke{{Version: "v1beta1",
		Rules: []conversion.ConversionRule{
			{Move: ".spec.e", Values: map[string]string{"big": "huge"}},
		}}}, Preserve: &conversion.Preserve{Annotation: "example.com/kept"}},
		convert.Options{Kind: schema.GroupKind{Group: "example.com", Kind: "Thing"}, Versions: versions})
	if len(problems) > 0 {
		t.Fatal(problems[0])
	}
	return c
}

// editor edits made objects in another version.
type editor struct {
	*prover
	edits  *generator.Generator // makes objects from which single fields are taken
	random *rand.Rand
	tried  int
}

// edit takes one object there, edits one field of its spec, and takes it back. It returns what is wrong.
func (e *editor) edit(ctx context.Context) string {
	obj, ok := e.generator.Make(ctx, e.from)
	other, okOther := e.edits.Make(ctx, e.via)
	if !ok || !okOther {
		return ""
	}
	there := runtime.DeepCopyJSON(obj)
	if err := e.Convert(ctx, there, e.via.Name); err != nil {
		return err.Error()
	}
	e.via.Coerce(there)
	names := slices.Sorted(maps.Keys(e.via.Structural.Properties["spec"].Properties))
	name := names[e.random.IntN(len(names))]
	before := there["spec"].(map[string]any)[name]
	delete(there["spec"].(map[string]any), name)
	if value, ok := other["spec"].(map[string]any)[name]; ok {
		there["spec"].(map[string]any)[name] = value
	}
	e.via.Coerce(there)
	now := there["spec"].(map[string]any)[name]
	if len(e.via.Validate(ctx, there)) > 0 {
		return ""
	}
	e.tried++
	back := runtime.DeepCopyJSON(there)
	if err := e.Convert(ctx, back, e.from.Name); err != nil {
		return err.Error()
	}
	e.from.Coerce(back)
	after := e.WithoutPreserved(back)
	generator.DropEmptyMetadata(after)
	for _, f := range places.Differences(obj, after, e.from.Structural) {
		if len(f.Path) < 2 || f.Path[1] != name {
			return fmt.Sprintf(
				"%s was edited in %s, and %s became %s:\n%v\n%v\n%v",
				name,
				e.via.Name,
				f.Path,
				shown(f.Was, f.WasAbsent),
				obj,
				there,
				back,
			)
		}
	}
	rulesAlone := runtime.DeepCopyJSON(e.WithoutPreserved(there))
	if err := e.Convert(ctx, rulesAlone, e.from.Name); err != nil {
		return err.Error()
	}
	e.from.Coerce(rulesAlone)
	has, want := back["spec"].(map[string]any)[name], rulesAlone["spec"].(map[string]any)[name]
	isScalar := reflect.TypeOf(now) == nil || reflect.TypeOf(now).Comparable()
	if isScalar && !places.Equal(before, now) && !places.Equal(has, want) {
		return fmt.Sprintf("%s was edited in %s, and became %v instead of %v:\n%v\n%v", name, e.via.Name, has, want, obj, there)
	}
	return ""
}
