package ownership

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/internal/testkit"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/merge"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
	"sigs.k8s.io/yaml"

	"github.com/corollary-dev/corollary/pkg/config/conversion"
	"github.com/corollary-dev/corollary/pkg/convert"
	"github.com/corollary-dev/corollary/pkg/kinds"
)

// owners is a kind of two versions, and what the API server does with the fields that managers own.
type owners struct {
	t         *testing.T
	random    *rand.Rand
	ownership *Ownership
	updater   *merge.Updater
}

func newOwners(t *testing.T, dir string) *owners {
	t.Helper()
	var err error
	o := &owners{t: t, random: rand.New(rand.NewPCG(3, 4))}
	if o.ownership, err = New(compileIn(t, dir)); err != nil {
		t.Fatal(err)
	}
	builder := merge.UpdaterBuilder{Converter: o}
	o.updater = builder.BuildUpdater()
	return o
}

// Convert implements merge.Converter, as the API server does.
func (o *owners) Convert(v *typed.TypedValue, version fieldpath.APIVersion) (*typed.TypedValue, error) {
	obj, ok := v.AsValue().Unstructured().(map[string]any)
	if !ok || obj["apiVersion"] == string(version) {
		return v, nil
	}
	gv, err := schema.ParseGroupVersion(string(version))
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(obj)}
	if err := o.ownership.converter.Convert(o.t.Context(), u.Object, gv.Version); err != nil {
		return nil, err
	}
	return o.ownership.types.ObjectToTyped(u)
}

// IsMissingVersionError implements merge.Converter.
func (*owners) IsMissingVersionError(error) bool { return false }

func (o *owners) typed(obj map[string]any) *typed.TypedValue {
	o.t.Helper()
	v := must.Get(o.ownership.types.ObjectToTyped(&unstructured.Unstructured{Object: obj})).In(o.t)
	return v
}

// object makes a random object of v1.
func (o *owners) object() map[string]any {
	word := func() string { return []string{"a", "b", "c"}[o.random.IntN(3)] }
	spec := map[string]any{"host": word(), "port": int64(o.random.IntN(3)), "full": word() + " " + word()}
	optional := map[string]any{
		"cron": word(), "notes": []any{word()}, "same": word(), "level": []any{"Enabled", "Disabled"}[o.random.IntN(2)],
		"tier": []any{"basic", "gold"}[o.random.IntN(2)], "zone": word(), "args": []any{word(), word()}, "marks": []any{"m", word()},
		"extra": map[string]any{word(): word(), word(): word()}, "o": map[string]any{word(): word()}, "fixed": map[string]any{"a": word()},
	}
	for _, key := range slices.Sorted(maps.Keys(optional)) { // in an order, so that each run makes the same objects
		if o.random.IntN(4) > 0 {
			spec[key] = optional[key]
		}
	}
	if m, ok := spec["o"].(map[string]any); ok {
		delete(m, "c")
	}
	if o.random.IntN(3) > 0 {
		servers := []any{}
		for _, id := range []string{"x", "y"}[o.random.IntN(2):] {
			server := map[string]any{"id": id, "host": word(), "port": int64(o.random.IntN(3))}
			if o.random.IntN(2) == 0 {
				server["tag"] = word()
			}
			servers = append(servers, server)
		}
		spec["servers"] = servers
	}
	return map[string]any{"apiVersion": "example.com/v1", "kind": "Thing", "metadata": map[string]any{"name": "x"}, "spec": spec}
}

// some is a random part of an object, as one would apply it, and the fields that one owns then.
func (o *owners) some(v *typed.TypedValue) (*typed.TypedValue, *fieldpath.Set) {
	o.t.Helper()
	all := must.Get(v.ToFieldSet()).In(o.t)
	chosen := fieldpath.NewSet()
	all.Leaves().Iterate(func(path fieldpath.Path) {
		if o.random.IntN(3) == 0 && *path[0].FieldName == "spec" {
			chosen.Insert(path.Copy())
		}
	})
	return o.part(v, chosen)
}

func (o *owners) part(v *typed.TypedValue, chosen *fieldpath.Set) (*typed.TypedValue, *fieldpath.Set) {
	o.t.Helper()
	chosen.Insert(fieldpath.MakePathOrDie("apiVersion"))
	chosen.Insert(fieldpath.MakePathOrDie("kind"))
	part := v.ExtractItems(chosen, typed.WithAppendKeyFields())
	set := must.Get(part.ToFieldSet()).In(o.t)
	return part, set.Difference(fieldpath.NewSet(fieldpath.MakePathOrDie("apiVersion"), fieldpath.MakePathOrDie("kind")))
}

// changed is a random value of an object, changed.
func (o *owners) changed(obj map[string]any) (*typed.TypedValue, fieldpath.Path) {
	o.t.Helper()
	all := must.Get(o.typed(obj).ToFieldSet()).In(o.t)
	var paths []fieldpath.Path
	all.Leaves().Iterate(func(path fieldpath.Path) {
		last := path[len(path)-1]
		if *path[0].FieldName == "spec" && last.FieldName != nil && *last.FieldName != "id" {
			paths = append(paths, path.Copy())
		}
	})
	path := paths[o.random.IntN(len(paths))]
	other := runtime.DeepCopyJSON(obj)
	where := position(path, other)
	m := at(other, where[:len(where)-1]).(map[string]any)
	key := where[len(where)-1].(string)
	switch value := m[key].(type) {
	case string:
		m[key] = "z" + value
		if key == "level" {
			m[key] = map[string]any{"Enabled": "Disabled", "Disabled": "Enabled"}[value]
		}
	case int64:
		m[key] = value + 10
	case []any:
		m[key] = []any{"z"}
	case map[string]any:
		m[key] = map[string]any{"a": "z"}
	}
	config, _ := o.part(o.typed(other), fieldpath.NewSet(path))
	return config, path
}

func (o *owners) apply(obj map[string]any, config *typed.TypedValue, alice fieldpath.VersionedSet, manager string,
) (string, fieldpath.ManagedFields, error) {
	o.t.Helper()
	managers := fieldpath.ManagedFields{"alice": alice}
	made, managers, err := o.updater.Apply(o.typed(obj), config, "example.com/v1", managers, manager, false)
	if err != nil {
		return "", nil, err
	}
	var content any = obj
	if made != nil {
		content = made.AsValue().Unstructured()
	}
	content = runtime.DeepCopyJSONValue(content)
	o.ownership.converter.Hub.Coerce(content.(map[string]any))
	if errs := o.ownership.converter.Hub.Validate(o.t.Context(), content.(map[string]any)); len(errs) > 0 {
		return "", nil, errs.ToAggregate()
	}
	// The annotation has what the API server cannot convert while fields are missing, until the next conversion.
	return asText(o.t, content.(map[string]any)["spec"]), managers, nil
}

// Who owns fields of an old version has the same conflicts, and gives up the same fields, after the set was converted
// to the new version.
func TestOwnership(t *testing.T) {
	t.Parallel()
	o := newOwners(t, "testdata/owned")
	conflicts, removals, beyond := 0, 0, map[string]int{}
	for n := range 600 {
		obj := o.object()
		old := must.Get(o.Convert(o.typed(obj), "example.com/v1beta1")).In(t)
		_, set := o.some(old)
		converted := must.Get(o.ownership.Convert(t.Context(), &unstructured.Unstructured{Object: obj}, "v1beta1", set)).In(t, obj)
		before := fieldpath.NewVersionedSet(set, "example.com/v1beta1", true)
		after := fieldpath.NewVersionedSet(converted, "example.com/v1", true)

		config, path := o.changed(obj)
		_, _, was := o.apply(obj, config, before, "bob")
		_, _, is := o.apply(obj, config, after, "bob")
		switch {
		case was != nil && is == nil:
			t.Fatalf("%d: alice owns %s, which becomes %s: bob changes %s, and the conflict is lost: %v", n, set, converted, path, was)
		case was == nil && is != nil:
			beyond[path.String()]++
		case was != nil:
			conflicts++
		}

		config, applied := o.some(o.typed(obj))
		if applied.Empty() {
			continue // the API server removes .spec with what nobody owns, but not through another version
		}
		made, owners, err := o.apply(obj, config, before, "alice")
		if err != nil {
			continue // the API server would refuse it
		}
		now, ownersNow, err := o.apply(obj, config, after, "alice")
		if err != nil || now != made || fmt.Sprint(owners["alice"].Set()) != fmt.Sprint(ownersNow["alice"].Set()) {
			t.Fatalf("%d: %v\nalice owns %s, which becomes %s: she applies %s\nand gets %s\nnot    %s: %v", n, obj, set, converted,
				config.AsValue(), now, made, err)
		}
		if removals++; made == asText(t, obj["spec"]) {
			removals--
		}
	}
	delete(beyond, ".spec.full") // two fields of the old version: whoever owns one of them owns it
	if conflicts < 150 || removals < 150 || len(beyond) > 0 {
		t.Errorf("%d conflicts, %d removals; conflicts that were none: %v", conflicts, removals, beyond)
	}
}

// compileIn compiles crd.yaml and conversion.yaml of a directory.
func compileIn(t *testing.T, dir string) *convert.Converter {
	t.Helper()
	definition := testkit.Definition(t, filepath.Join(dir, "crd.yaml"))
	versions := must.Get(kinds.Versions(definition)).In(t)
	text := must.Get(os.ReadFile(filepath.Join(dir, "conversion.yaml"))).In(t)
	var conf conversion.Conversion
	must.Do(t, yaml.Unmarshal(text, &conf))
	kind := schema.GroupKind{Group: definition.Spec.Group, Kind: definition.Spec.Names.Kind}
	c, problems := convert.Compile(&conf, convert.Options{Kind: kind, Versions: versions})
	if len(problems) > 0 {
		t.Fatal(problems[0])
	}
	return c
}

func asText(t *testing.T, v any) string {
	t.Helper()
	text := must.Get(json.Marshal(v)).In(t)
	return string(text)
}
