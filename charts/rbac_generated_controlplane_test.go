//go:build controlplane

package charts

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"sigs.k8s.io/yaml"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/config/schema"
)

// generatedConfigs is how many configs are made at random, besides one for each key.
const generatedConfigs = 400

// TestRightsOfEveryKey compares the rights of made-up configs: for every key of the schema, and every word that it may
// be, at least one that has it, and random ones. A key of the schema is at a def: TYPE.KEY, or TYPE.KEY=WORD.
func TestRightsOfEveryKey(t *testing.T) {
	t.Parallel()
	m := newMutator(t)
	cases := map[string]rightsCase{}
	have := map[string]bool{}
	add := func(name string, doc map[string]any, of seed) bool {
		c, ok := of.variant(t, name, doc)
		if ok {
			cases[name] = c
			m.visit(doc, func(o part) { maps.Copy(have, o.present()) })
		}
		return ok
	}
	for i, s := range m.seeds {
		if !add(fmt.Sprintf("seed%d", i), s.doc, s) {
			t.Fatalf("seed %d is not valid:\n%v", i, s.doc)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(m.keys)) {
		if !have[key] && !m.reach(key, add) {
			t.Errorf("no valid config has %s: add one to testdata/rights", key)
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	var made []string
	for len(made) < generatedConfigs {
		s := m.seeds[random.IntN(len(m.seeds))]
		doc := copied(s.doc)
		for range 1 + random.IntN(4) {
			edits := m.edits(doc)
			edits[random.IntN(len(edits))].apply()
		}
		name := fmt.Sprintf("random%d", len(made))
		if add(name, doc, s) {
			made = append(made, name)
		}
	}
	for i, name := range made { // several operators of one process
		both := rightsCase{configs: append(slices.Clone(cases[name].configs), cases[made[random.IntN(i+1)]].configs...)}
		if loaded, problems := load.Operators(load.Options{Files: both.configs}); len(problems) == 0 && !sameNames(loaded) {
			cases[name+"-and-another"] = both
		}
	}
	compareRights(t, cases)
}

// sameNames is whether files that configs name have one name in several places: the chart mounts all in one directory.
func sameNames(configs []*load.File) bool {
	places := map[string]string{}
	for _, c := range configs {
		for _, name := range c.Named() {
			at, base := c.Place(name), filepath.Base(name)
			if other, taken := places[base]; taken && other != at {
				return true
			}
			places[base] = at
		}
	}
	return false
}

// seed is a valid config that others are made from, in its directory with the files that it names.
type seed struct {
	doc  map[string]any
	path string
	crds []string
}

// variant writes a config beside the seed; ok is whether it is valid.
func (s seed) variant(t *testing.T, name string, doc map[string]any) (c rightsCase, ok bool) {
	t.Helper()
	text := must.Get(yaml.Marshal(doc)).In(t)
	path := filepath.Join(filepath.Dir(s.path), "made-"+strings.NewReplacer("=", "-", "/", "-").Replace(name)+".yaml")
	must.Do(t, os.WriteFile(path, text, 0o600))
	_, problems := load.Operators(load.Options{Files: []string{path}})
	return rightsCase{configs: []string{path}, crds: s.crds}, len(problems) == 0
}

// mutator changes configs along their schema.
type mutator struct {
	schema, definitions map[string]any
	seeds               []seed
	keys                map[string]bool
	values              map[string][]any // by key: what seeds have there
}

// part is an object of a config, with the properties that its schema has.
type part struct {
	def        string
	values     map[string]any
	properties map[string]any
}

// present are the keys that an object has, and their words.
func (o part) present() map[string]bool {
	have := map[string]bool{}
	for key, value := range o.values {
		have[o.def+"."+key] = true
		have[fmt.Sprintf("%s.%s=%v", o.def, key, value)] = true
	}
	return have
}

func newMutator(t *testing.T) *mutator {
	t.Helper()
	m := &mutator{keys: map[string]bool{}, values: map[string][]any{}}
	must.Do(t, json.Unmarshal(schema.Operator(), &m.schema))
	m.definitions, _ = m.schema["$defs"].(map[string]any)
	for name, definition := range m.definitions {
		if name != "ConversionRule" { // of itself; conversions have no right but of their kind
			m.declare(name, definition)
		}
	}
	m.declare("Operator", m.schema)
	for _, c := range append(slices.Collect(maps.Values(rightsCases(t))), completeConfig(t)) {
		for _, path := range c.configs {
			m.seed(t, path, c.crds)
		}
	}
	slices.SortFunc(m.seeds, func(a, b seed) int { return strings.Compare(asJSON(a.doc), asJSON(b.doc)) })
	for _, s := range m.seeds {
		m.visit(s.doc, func(o part) {
			for _, key := range slices.Sorted(maps.Keys(o.values)) {
				at := o.def + "." + key
				same := func(v any) bool { return asJSON(v) == asJSON(o.values[key]) }
				if !slices.ContainsFunc(m.values[at], same) && len(m.values[at]) < 8 {
					m.values[at] = append(m.values[at], copied(o.values[key]))
				}
			}
		})
	}
	return m
}

// declare adds the keys of a definition.
func (m *mutator) declare(name string, definition any) {
	for key, property := range propertiesOf(definition) {
		m.keys[name+"."+key] = true
		for _, word := range wordsOf(property) {
			m.keys[fmt.Sprintf("%s.%s=%v", name, key, word)] = true
		}
	}
}

// seed adds the configs of a file or a directory, each in a copy of the directory, since variants stand beside it.
func (m *mutator) seed(t *testing.T, path string, crds []string) {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	paths := []string{path}
	if info.IsDir() {
		if paths, err = filepath.Glob(filepath.Join(path, "*.yaml")); err != nil {
			t.Fatal(err)
		}
	}
	parent := t.TempDir()
	must.Do(t, os.CopyFS(filepath.Join(parent, "conf"), os.DirFS(filepath.Dir(paths[0]))))
	shared := "apiVersion: corollary.dev/v1alpha1\nkind: Conventions\nconventions: {}\n"
	must.Do(t, os.WriteFile(filepath.Join(parent, "conventions.yaml"), []byte(shared), 0o600))
	for _, path := range paths {
		text := must.Get(os.ReadFile(path)).In(t)
		s := seed{path: filepath.Join(parent, "conf", filepath.Base(path)), crds: crds}
		must.Do(t, yaml.Unmarshal(text, &s.doc), path)
		if s.doc["kind"] == "Operator" {
			m.seeds = append(m.seeds, s)
		}
	}
}

// completeConfig is the config of the loader's test that has nearly every key.
func completeConfig(t *testing.T) rightsCase {
	t.Helper()
	archive := must.Get(txtar.ParseFile("../testdata/complete/complete.txtar")).In(t)
	files := map[string]string{}
	for _, f := range archive.Files {
		if name, ok := strings.CutPrefix(f.Name, "conf/"); ok {
			files[name] = string(f.Data)
		}
	}
	return rightsCase{configs: []string{filepath.Join(unpack(t, files), "app.yaml")}}
}

// visit calls f for every object of a config that the schema describes.
func (m *mutator) visit(doc map[string]any, f func(part)) { m.walk("Operator", m.schema, doc, f) }

func (m *mutator) walk(name string, schema map[string]any, value any, f func(part)) {
	if ref, ok := schema["$ref"].(string); ok {
		name = strings.TrimPrefix(ref, "#/$defs/")
		schema, _ = m.definitions[name].(map[string]any)
	}
	switch value := value.(type) {
	case []any:
		items, _ := schema["items"].(map[string]any)
		for _, item := range value {
			m.walk(name, items, item, f)
		}
	case map[string]any:
		properties := propertiesOf(schema)
		if len(properties) == 0 {
			return
		}
		f(part{def: name, values: value, properties: properties})
		for _, key := range slices.Sorted(maps.Keys(value)) {
			property, _ := properties[key].(map[string]any)
			m.walk(name+"."+key, property, value[key], f)
		}
	}
}

// propertiesOf are the keys of a definition, of one that has a short form too.
func propertiesOf(definition any) map[string]any {
	schema, _ := definition.(map[string]any)
	properties, ok := schema["properties"].(map[string]any)
	if either, _ := schema["anyOf"].([]any); !ok && len(either) > 0 {
		return propertiesOf(either[len(either)-1])
	}
	return properties
}

// wordsOf are the values of a property that has only a few.
func wordsOf(property any) []any {
	schema, _ := property.(map[string]any)
	if schema["type"] == "boolean" {
		return []any{true, false}
	}
	words, _ := schema["enum"].([]any)
	return words
}

// edit is one change of a config. key is what the config has then.
type edit struct {
	key    string
	values map[string]any
	name   string
	value  any // nil to remove the key
}

func (e edit) apply() {
	if e.value == nil {
		delete(e.values, e.name)
	} else {
		e.values[e.name] = copied(e.value)
	}
}

// edits are all single changes of a config: a key removed, set to another word, or to what another config has there.
func (m *mutator) edits(doc map[string]any) []edit {
	var list []edit
	m.visit(doc, func(o part) {
		for _, name := range slices.Sorted(maps.Keys(o.properties)) {
			at := o.def + "." + name
			if _, ok := o.values[name]; ok {
				list = append(list, edit{values: o.values, name: name})
			}
			for _, word := range wordsOf(o.properties[name]) {
				list = append(list, edit{key: fmt.Sprintf("%s=%v", at, word), values: o.values, name: name, value: word})
			}
			for _, value := range m.values[at] {
				list = append(list, edit{key: at, values: o.values, name: name, value: value})
			}
		}
	})
	return list
}

// reach adds a config that has a key, by a change of a seed.
func (m *mutator) reach(key string, add func(string, map[string]any, seed) bool) bool {
	for _, s := range m.seeds {
		for i, e := range m.edits(s.doc) {
			if e.key != key {
				continue
			}
			doc := copied(s.doc)
			m.edits(doc)[i].apply()
			if add(key, doc, s) {
				return true
			}
		}
	}
	return false
}

func asJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// copied is a deep copy of what was read from JSON.
func copied[T any](v T) (out T) {
	if err := json.Unmarshal([]byte(asJSON(v)), &out); err != nil {
		panic(err)
	}
	return out
}
