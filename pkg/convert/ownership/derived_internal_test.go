package ownership

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/corollary-dev/corollary/internal/must"
)

// derivedFrom are the fields of v1beta1 that a field of v1 is made of, by the rules above. notes has more than one item
// by v1 alone.
func derivedFrom(path fieldpath.Path, firstNote string) []string {
	text := path.String()
	switch {
	case strings.HasPrefix(text, ".metadata.labels"), text == ".spec.o.a", text == ".spec.level", strings.HasPrefix(text, ".status"):
		return []string{text}
	case strings.HasPrefix(text, ".spec.extra."):
		return []string{strings.Replace(text, "extra", "labels", 1)}
	case strings.HasPrefix(text, ".spec.servers["):
		item, field, isField := strings.Cut(strings.NewReplacer("servers[id", "backends[name").Replace(text), "].")
		if !isField {
			return []string{item}
		}
		old := map[string]string{"id": "name", "host": "hostPort", "port": "hostPort"}[field]
		return []string{item + "]." + old}
	}
	return map[string][]string{
		".spec.host": {".spec.hostPort"}, ".spec.port": {".spec.hostPort"}, ".spec.full": {".spec.first", ".spec.last"},
		".spec.cron": {".spec.schedule"}, ".spec.q.a": {".spec.p.a"}, ".spec.fixed.a": {".spec.fixed"},
		".spec.loose":                       {".spec.loose", ".spec.loose.a"},
		`.spec.notes[="` + firstNote + `"]`: {".spec.note"},
	}[text]
}

// derived makes a random object as it is stored in v1, with what only either version has, and the same in v1beta1.
func (o *owners) derived() (live, old map[string]any) {
	o.t.Helper()
	word := func() string { return []string{"a", "b", "c"}[o.random.IntN(3)] }
	some := func(fields map[string]any) map[string]any {
		for _, key := range slices.Sorted(maps.Keys(fields)) {
			if m, _ := fields[key].(map[string]any); o.random.IntN(3) == 0 || m != nil && len(m) == 0 {
				delete(fields, key)
			}
		}
		return fields
	}
	newer := func() map[string]any { return some(map[string]any{"a": word(), "newer": word()}) }
	spec := some(map[string]any{
		"cron": word(), "level": []any{"Enabled", "Disabled"}[o.random.IntN(2)], "notes": []any{"x", "y"}[:1+o.random.IntN(2)],
		"timeZone": word(), "tier": []any{"basic", "gold"}[o.random.IntN(2)], "mode": word(),
		"extra": some(map[string]any{"k": word(), "l": word()}),
		"o":     newer(), "q": newer(), "fixed": newer(), "loose": newer(), "newest": map[string]any{"a": word()},
	})
	spec["host"], spec["port"], spec["full"] = word(), word(), word()+" "+word()
	if o.random.IntN(2) == 0 {
		item := some(map[string]any{"newer": word()})
		item["id"], item["host"], item["port"] = word(), word(), word()
		spec["servers"] = []any{item}
	}
	live = map[string]any{"apiVersion": "example.com/v1", "kind": "Thing", "spec": spec, "status": some(map[string]any{"ready": word()}),
		"metadata": map[string]any{"name": "x", "labels": some(map[string]any{"k": word()})}}
	o.ownership.converter.Hub.Coerce(live)
	old = o.content(live, "example.com/v1beta1")
	in, _ := old["spec"].(map[string]any)
	for _, m := range []any{in["o"], in["p"], in["loose"], in} {
		if m, ok := m.(map[string]any); ok && o.random.IntN(2) == 0 {
			m["older"], m["only"] = word(), word()
		}
	}
	o.ownership.converter.Version("v1beta1").Prune(old)
	live = o.content(old, "example.com/v1")
	return live, o.content(live, "example.com/v1beta1")
}

func (o *owners) content(obj map[string]any, version fieldpath.APIVersion) map[string]any {
	o.t.Helper()
	v := must.Get(o.Convert(o.typed(obj), version)).In(o.t)
	content := runtime.DeepCopyJSON(v.AsValue().Unstructured().(map[string]any))
	o.ownership.converter.Version(strings.TrimPrefix(string(version), "example.com/")).Coerce(content)
	return content
}

// withMaps adds the maps and lists that fields are in, as an update does that makes them.
func withMaps(set *fieldpath.Set) *fieldpath.Set {
	all := set.Copy()
	set.Iterate(func(path fieldpath.Path) {
		for n := 1; n < len(path); n++ {
			all.Insert(path[:n].Copy())
		}
	})
	return all
}

// A manager of the old version owns afterwards what is derived from its fields, and nothing else: neither what only the
// new version has or sets by default, nor the annotation with what only the old one has. An apply would remove these,
// since it cannot name them.
func TestOwnershipOfDerivedFields(t *testing.T) {
	t.Parallel()
	o := newOwners(t, "testdata/derived")
	mistakes := map[string]string{}
	for n := range 600 {
		live, old := o.derived()
		v := o.typed(old)
		_, set := o.some(v)
		fields := must.Get(v.ToFieldSet()).In(t)
		if n%3 == 0 { // who creates an object owns all of it
			set = fields.Difference(fieldpath.NewSet(fieldpath.MakePathOrDie("apiVersion"), fieldpath.MakePathOrDie("kind"),
				fieldpath.MakePathOrDie("metadata", "name"), fieldpath.MakePathOrDie("metadata", "annotations", "example.com/kept")))
		}
		if n%2 == 0 { // an update owns the maps too
			set = withMaps(set)
		}
		got := must.Get(o.ownership.Convert(t.Context(), &unstructured.Unstructured{Object: live}, "v1beta1", set)).In(t, live)
		owned := map[string]bool{}
		set.Iterate(func(path fieldpath.Path) { owned[path.String()] = true })
		liveFields := must.Get(o.typed(live).ToFieldSet()).In(t)
		note, _ := old["spec"].(map[string]any)["note"].(string)
		liveFields.Iterate(func(path fieldpath.Path) {
			want := slices.ContainsFunc(derivedFrom(path, note), func(from string) bool { return owned[from] })
			if got.Has(path) != want {
				mistakes[path.String()] = fmt.Sprintf("owned: %t, want %t: alice owned %s of %s", !want, want, set, asText(t, live))
			}
		})
	}
	for _, path := range slices.Sorted(maps.Keys(mistakes)) {
		t.Errorf("%s: %s", path, mistakes[path])
	}
}

// The example: v1beta1 has no timeZone, and the manager of v1beta1 owns all that v1beta1 has.
func TestOwnershipOfPreservedField(t *testing.T) {
	t.Parallel()
	o := newOwners(t, "../../../examples/conversions/crontab")
	obj := map[string]any{"apiVersion": "stable.example.com/v1", "kind": "CronTab", "metadata": map[string]any{"name": "three"},
		"spec": map[string]any{"host": "h3", "port": int64(3), "cron": "c", "timeZone": "Europe/Berlin"}}
	spec := func(names ...string) *fieldpath.Set {
		set := fieldpath.NewSet()
		for _, name := range names {
			set.Insert(fieldpath.MakePathOrDie("spec", name))
		}
		return set
	}
	got, err := o.ownership.Convert(t.Context(), &unstructured.Unstructured{Object: obj}, "v1beta1", spec("hostPort", "schedule"))
	if want := spec("host", "port", "cron"); err != nil || !got.Equals(want) {
		t.Errorf("got %s, want %s: %v", got, want, err)
	}
}
