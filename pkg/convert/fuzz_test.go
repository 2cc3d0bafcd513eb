package convert_test

import (
	"encoding/binary"
	"encoding/json"
	"maps"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"regexp/syntax"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/pkg/config/conversion"
	"github.com/corollary-dev/corollary/pkg/convert"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/kinds"
)

// certified is a conversion that is certified, and one way there and back.
type certified struct {
	name      string
	kind      schema.GroupKind
	converter *convert.Converter
	from, via *kinds.Version
	preserve  string
	lossy     bool // some loss is acknowledged
	// renamed is converter with another name of the annotation of preserve.
	renamed *convert.Converter
}

// certifiedConversions are those of the examples, and the rows of TestProve that nothing is found against.
func certifiedConversions(t testing.TB) (list []certified) {
	add := func(name string, crd, text []byte) {
		var conf conversion.Conversion
		must.Do(t, yaml.Unmarshal(text, &conf))
		text, err := yaml.Marshal(conf)
		if err != nil {
			t.Fatal(err)
		}
		c, problems := compile(t, crd, text)
		if len(problems) > 0 {
			t.Fatalf("%s: %v", name, problems[0])
		}
		definition, versions := define(t, crd)
		kind := schema.GroupKind{Group: definition.Spec.Group, Kind: definition.Spec.Names.Kind}
		version := func(name string) *kinds.Version {
			return versions[slices.IndexFunc(versions, func(v *kinds.Version) bool { return v.Name == name })]
		}
		preserve, renamed := "", c
		if conf.Preserve != nil {
			preserve, conf.Preserve.Annotation = conf.Preserve.Annotation, "fuzz.example.com/renamed"
			if text, err = yaml.Marshal(conf); err != nil {
				t.Fatal(err)
			}
			if renamed, problems = compile(t, crd, text); len(problems) > 0 {
				t.Fatalf("%s: %v", name, problems[0])
			}
		}
		for _, s := range conf.Spokes {
			list = append(list, certified{name, kind, c, version(s.Version), version(conf.Hub), preserve, len(s.Lost) > 0, renamed},
				certified{name, kind, c, version(conf.Hub), version(s.Version), preserve, len(s.Lost) > 0, renamed})
		}
	}
	for _, row := range proofRows(t, "testdata/prove.yaml") {
		if row.Problem+row.Counter+row.Unproven == "" {
			add(row.Name, row.definition(), row.conversion())
		}
	}
	read := func(path string) []byte {
		data := must.Get(os.ReadFile(filepath.Join("../../examples/conversions", path))).In(t)
		return data
	}
	add("crontab", read("crontab/crd.yaml"), read("crontab/conversion.yaml"))
	var operator struct{ Conversion any }
	must.Do(t, yaml.Unmarshal(read("appoperator/operator.yaml"), &operator))
	text := must.Get(yaml.Marshal(operator.Conversion)).In(t)
	add("appoperator", read("appoperator/crd.yaml"), text)
	return list
}

// FuzzCertified makes objects in another way than convert prove: by the fuzzer's bytes. No valid object may make a
// certified conversion fail, become invalid, or come back different.
func FuzzCertified(f *testing.F) {
	all := certifiedConversions(f)
	for i := range all {
		f.Add(uint16(i), []byte("0123456789abcdefghijklmnopqrstuvwxyz"))
		f.Add(uint16(i), []byte{})
		f.Add(uint16(i), slices.Repeat([]byte{0xff, 1, 0x80, 7}, 20))
	}
	f.Fuzz(func(t *testing.T, which uint16, data []byte) {
		c := all[int(which)%len(all)]
		src := &source{data}
		obj, _ := src.value(c.from.Structural, 0).(map[string]any)
		if obj == nil {
			return
		}
		obj["apiVersion"], obj["kind"] = c.kind.WithVersion(c.from.Name).ToAPIVersionAndKind()
		obj["metadata"] = src.metadata(c.preserve)
		obj, ok := c.stored(t, c.from, obj)
		if !ok {
			return
		}
		for _, left := range prunings(obj) {
			text := encoded(t, left)
			if err := c.converter.Convert(t.Context(), left, c.via.Name); err != nil {
				t.Fatalf("%s: what a server-side apply has left of an object: %s: %v", c.name, text, err)
			}
		}
		there := runtime.DeepCopyJSON(obj)
		if err := c.converter.Convert(t.Context(), there, c.via.Name); err != nil {
			t.Fatalf("%s: %s: %v", c.name, encoded(t, obj), err)
		}
		there, ok = c.stored(t, c.via, there)
		if !ok {
			t.Fatalf("%s: %s becomes %s, which is not valid", c.name, encoded(t, obj), encoded(t, there))
		}
		for _, converter := range []*convert.Converter{c.converter, c.renamed} {
			back := runtime.DeepCopyJSON(there)
			if err := converter.Convert(t.Context(), back, c.from.Name); err != nil {
				t.Fatalf("%s: %s becomes %s: %v", c.name, encoded(t, obj), encoded(t, there), err)
			}
			back, ok = c.stored(t, c.from, back)
			if want := c.withoutData(obj); !ok || !c.lossy && !reflect.DeepEqual(want, c.withoutData(back)) {
				t.Fatalf("%s: %s\nbecomes %s\nthen    %s", c.name, encoded(t, want), encoded(t, there), encoded(t, back))
			}
		}
	})
}

// prunings are copies of an object that each lack one of its fields or items. A server-side apply in another version
// has the API server convert what is left of an object without the fields that its manager owned, defaults included.
func prunings(obj map[string]any) (list []map[string]any) {
	without := func(at fieldpath.Path) {
		if len(list) > 30 { // an input has 10 s, also where coverage is counted
			return
		}
		left := runtime.DeepCopyJSON(obj)
		fieldpath.Remove(left, at)
		list = append(list, left)
	}
	var walk func(at fieldpath.Path, v any)
	walk = func(at fieldpath.Path, v any) {
		switch v := v.(type) {
		case map[string]any:
			for _, key := range slices.Sorted(maps.Keys(v)) {
				if len(at) == 0 && key != "spec" && key != "data" {
					continue
				}
				below := append(slices.Clone(at), fieldpath.New(key)...)
				without(below)
				walk(below, v[key])
			}
		case []any:
			for i, item := range v {
				below := append(slices.Clone(at), fieldpath.Step{Kind: fieldpath.IndexStep, Index: i})
				without(below)
				walk(below, item)
			}
		}
	}
	walk(nil, obj)
	return list
}

// stored is an object as the API server would store it; ok is false where it would refuse it.
func (c certified) stored(t *testing.T, v *kinds.Version, obj map[string]any) (stored map[string]any, ok bool) {
	if err := kjson.UnmarshalCaseSensitivePreserveInts(encoded(t, obj), &stored); err != nil {
		return obj, false
	}
	v.Coerce(stored)
	dropEmpty(stored)
	return stored, len(v.Validate(t.Context(), stored)) == 0
}

// withoutData is an object less what travels on it, which may be other things on each way.
func (c certified) withoutData(obj map[string]any) map[string]any {
	obj = runtime.DeepCopyJSON(obj)
	if annotations, ok := obj["metadata"].(map[string]any)["annotations"].(map[string]any); ok {
		delete(annotations, c.preserve)
		delete(annotations, "fuzz.example.com/renamed")
	}
	dropEmpty(obj)
	return obj
}

// dropEmpty removes labels and annotations where there are none, as the API server does.
func dropEmpty(obj map[string]any) {
	metadata, _ := obj["metadata"].(map[string]any)
	maps.DeleteFunc(metadata, func(_ string, v any) bool { m, ok := v.(map[string]any); return ok && len(m) == 0 })
}

func encoded(t *testing.T, v any) []byte {
	text := must.Get(json.Marshal(v)).In(t)
	return text
}

// source makes values of a schema from bytes: each decision takes some. Without any left, it takes the first choice.
type source struct{ data []byte }

// choose is one of n numbers, from 0 on.
func (s *source) choose(n int) int {
	if len(s.data) == 0 || n <= 1 {
		return 0
	}
	b := s.data[0]
	s.data = s.data[1:]
	return int(b) % n
}

func (s *source) take(n int) []byte {
	n = min(n, len(s.data))
	taken := s.data[:n]
	s.data = s.data[n:]
	return taken
}

func (s *source) bits() uint64 {
	var b [8]byte
	copy(b[:], s.take(1+s.choose(8)))
	return binary.LittleEndian.Uint64(b[:])
}

func (s *source) metadata(preserve string) map[string]any {
	metadata := map[string]any{"name": "a", "namespace": "default"}
	for _, name := range []string{"labels", "annotations"} {
		texts := map[string]any{}
		for range s.choose(3) {
			texts[[]string{"size", "example.com/a", "other"}[s.choose(3)]] = []string{"", "a", "7"}[s.choose(3)]
		}
		metadata[name] = texts
	}
	if preserve != "" && s.choose(4) == 3 { // anyone may write it
		metadata["annotations"].(map[string]any)[preserve] = s.text()
	}
	return metadata
}

// deep bounds how deep values are in each other.
const deep = 6

func (s *source) value(of *structuralschema.Structural, depth int) any {
	v := of.ValueValidation
	if v == nil {
		v = &structuralschema.ValueValidation{}
	}
	switch {
	case of.Nullable && s.choose(5) == 4:
		return nil
	case len(v.Enum) > 0:
		return runtime.DeepCopyJSONValue(v.Enum[s.choose(len(v.Enum))].Object)
	case of.XIntOrString && s.choose(2) == 0:
		return s.integer(v)
	case of.XIntOrString:
		return s.text()
	case of.Type == "boolean":
		return s.choose(2) == 1
	case of.Type == "integer":
		return s.integer(v)
	case of.Type == "number":
		return s.number(v)
	case of.Type == "string":
		return s.textOf(v)
	case of.Type == "array":
		return s.list(of, v, depth)
	case of.Type == "object":
		return s.object(of, v, depth)
	}
	return s.anything(depth)
}

func (s *source) object(of *structuralschema.Structural, v *structuralschema.ValueValidation, depth int) map[string]any {
	made := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(of.Properties)) {
		property := of.Properties[name]
		if depth == 0 && (name == "apiVersion" || name == "kind" || name == "metadata") {
			continue
		}
		if slices.Contains(v.Required, name) || depth < deep && s.choose(3) > 0 {
			made[name] = s.value(&property, depth+1)
		}
	}
	if a := of.AdditionalProperties; a != nil && a.Structural != nil && depth < deep {
		for range s.choose(4) {
			made[s.text()] = s.value(a.Structural, depth+1)
		}
	}
	if of.XPreserveUnknownFields && depth < deep {
		for range s.choose(3) {
			made[s.text()] = s.anything(depth + 1)
		}
	}
	return made
}

func (s *source) list(of *structuralschema.Structural, v *structuralschema.ValueValidation, depth int) []any {
	n := s.choose(4)
	if v.MinItems != nil {
		n += int(*v.MinItems)
	}
	if s.choose(16) == 15 && v.MaxItems != nil {
		n = int(min(*v.MaxItems, 2000))
	}
	made := []any{}
	for range n {
		if of.Items != nil && depth < deep {
			made = append(made, s.value(of.Items, depth+1))
		}
	}
	return made
}

// anything is any JSON.
func (s *source) anything(depth int) any {
	switch n := s.choose(8); {
	case n == 1 && depth < deep:
		return []any{s.anything(depth + 1), s.anything(depth + 1)}
	case n == 2 && depth < deep:
		return map[string]any{s.text(): s.anything(depth + 1), "a": s.anything(depth + 1)}
	case n == 3:
		return s.text()
	case n == 4:
		return int64(s.bits())
	case n == 5:
		return s.number(&structuralschema.ValueValidation{})
	case n == 6:
		return s.choose(2) == 1
	case n == 7:
		return map[string]any{}
	}
	return nil
}

func (s *source) integer(v *structuralschema.ValueValidation) int64 {
	n := int64(s.bits())
	if v.Format == "int32" {
		n = int64(int32(n))
	}
	if v.Minimum != nil && v.Maximum != nil && *v.Maximum-*v.Minimum < 1<<53 {
		span := uint64(*v.Maximum-*v.Minimum) + 1
		return int64(*v.Minimum) + int64(uint64(n)%span)
	}
	if v.Minimum != nil && float64(n) < *v.Minimum {
		n = int64(*v.Minimum) + n&0xff
	}
	return n
}

func (s *source) number(v *structuralschema.ValueValidation) any {
	switch s.choose(4) {
	case 0:
		return s.integer(v)
	case 1:
		f := float64(s.bits()) / math.MaxUint64
		if v.Minimum != nil && v.Maximum != nil {
			f = *v.Minimum + f*(*v.Maximum-*v.Minimum)
		}
		return f
	case 2:
		return float64(int64(s.bits())) / 1000
	}
	if f := math.Float64frombits(s.bits()); !math.IsNaN(f) && !math.IsInf(f, 0) {
		return f
	}
	return -0.5
}

// formats are valid texts of formats, in forms that are easily forgotten.
var formats = map[string][]string{
	"byte": {"", "/w==", "AA==", "4pyT", "gICA", "YQ==", "YR==", "Y Q==", "YQ==\n"},
	"date-time": {"2026-01-01T00:00:00Z", "2026-12-31T23:59:59.999999999+23:59", "0001-01-01T00:00:00Z",
		"9999-12-31t23:59:60z", "2024-02-29T00:00:00.10-00:00"},
	"date":     {"2026-01-01", "2024-02-29", "0000-01-01", "9999-12-31"},
	"duration": {"1s", "0", "1h60m", "-1.5h", "2562047h47m16.854775807s", "1.000000001s", "1 day", "2 weeks", "300000000h", "1us", "1µs"},
	"ipv4":     {"1.2.3.4", "0.0.0.0", "255.255.255.255"},
	"ipv6":     {"::1", "::ffff:1.2.3.4", "0:0:0:0:0:0:0:1", "FE80::1"},
	"cidr":     {"10.0.0.1/8", "::/0"},
	"uuid":     {"00000000-0000-0000-0000-000000000000", "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11"},
	"email":    {"a@b.example", "\"a b\"@example.com", "A <a@b.example>"},
	"uri":      {"http://a", "a:", "http://[::1]:80/%20?q=%C3%A9#f", "/a"},
	"hostname": {"a", "A.B", "xn--a-1"},
	"mac":      {"01:23:45:67:89:ab", "0123.4567.89ab"},
}

func (s *source) textOf(v *structuralschema.ValueValidation) string {
	if known := formats[v.Format]; len(known) > 0 && s.choose(4) > 0 {
		return known[s.choose(len(known))]
	}
	if v.Pattern != "" && s.choose(8) < 7 {
		if re, err := syntax.Parse(v.Pattern, syntax.Perl); err == nil {
			return s.matching(re.Simplify())
		}
	}
	text := s.text()
	if v.MaxLength != nil && s.choose(16) == 15 {
		text += strings.Repeat("é", max(0, int(min(*v.MaxLength, 10_000))-utf8.RuneCountInString(text)))
	}
	return text
}

// text is any text, in the end what the API server makes of invalid UTF-8.
func (s *source) text() string { return strings.ToValidUTF8(string(s.take(s.choose(24))), "\uFFFD") }

// matching is a text that most likely matches a regular expression.
func (s *source) matching(re *syntax.Regexp) string {
	var b strings.Builder
	repeat := func(low, high int) {
		for range low + s.choose(high-low+1) {
			b.WriteString(s.matching(re.Sub[0]))
		}
	}
	switch re.Op {
	case syntax.OpLiteral:
		return string(re.Rune)
	case syntax.OpCharClass:
		i := 2 * s.choose(len(re.Rune)/2)
		return string(re.Rune[i] + rune(s.bits()%uint64(re.Rune[i+1]-re.Rune[i]+1)))
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return string(rune(' ' + s.choose(95)))
	case syntax.OpConcat, syntax.OpCapture:
		for _, sub := range re.Sub {
			b.WriteString(s.matching(sub))
		}
	case syntax.OpAlternate:
		return s.matching(re.Sub[s.choose(len(re.Sub))])
	case syntax.OpStar:
		repeat(0, 5)
	case syntax.OpPlus:
		repeat(1, 6)
	case syntax.OpQuest:
		repeat(0, 1)
	case syntax.OpRepeat:
		repeat(re.Min, max(re.Min, re.Max, re.Min+3*(-re.Max)))
	}
	return b.String()
}
