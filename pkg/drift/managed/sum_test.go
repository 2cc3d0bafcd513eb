package managed

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/corollary-dev/corollary/pkg/canonical"
)

// maker makes values and the owned fields of them, from a few names and values, so that many are similar.
type maker struct{ *rand.Rand }

func (m maker) oneOf(values ...any) any { return values[m.IntN(len(values))] }

func (m maker) scalar() any { return m.oneOf("", "x", int64(0), int64(7), 1.5, false, true, nil) }

func (m maker) name() string { return m.oneOf("a", "b", "c", `d"<é`).(string) }

// value returns any JSON value.
func (m maker) value(depth int) any {
	switch kind := m.IntN(4); {
	case depth <= 0 || kind == 0:
		return m.scalar()
	case kind == 1:
		return m.list(depth)
	default:
		return m.object(depth)
	}
}

func (m maker) object(depth int) map[string]any {
	out := map[string]any{}
	for range m.IntN(4) {
		out[m.name()] = m.value(depth - 1)
	}
	return out
}

func (m maker) list(depth int) []any {
	out := []any{}
	keyed := m.IntN(3) > 0
	for range m.IntN(4) {
		item := m.value(depth - 1)
		if keyed {
			item = m.object(depth - 1)
			item.(map[string]any)["a"] = m.oneOf("x", "y", `z"<é`, int64(1))
		}
		out = append(out, item)
	}
	return out
}

// fields returns owned fields of live, and perhaps of what is missing.
func (m maker) fields(live any, depth int) Fields {
	out := Fields{}
	if depth <= 0 || m.IntN(6) == 0 {
		return out
	}
	switch live := live.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(live)) {
			if m.IntN(4) > 0 {
				out["f:"+name] = map[string]any(m.fields(live[name], depth-1))
			}
		}
	case []any:
		for i, item := range live {
			if m.IntN(4) > 0 {
				out[m.itemName(item, i)] = map[string]any(m.fields(item, depth-1))
			}
		}
	}
	for range m.IntN(2) {
		key := m.oneOf("f:"+m.name(), `k:{"a":"x"}`, `k:{"a":"\u0079"}`, `k:{"a":1,"b":"x"}`, `v:"x"`, "i:0", "i:9", "v:{", "k:").(string)
		out[key] = map[string]any(m.fields(nil, 0))
		if m.IntN(2) == 0 {
			out[key] = map[string]any{"f:" + m.name(): map[string]any{}}
		}
	}
	if len(out) > 0 && m.IntN(3) == 0 {
		out[ownDot] = map[string]any{}
	}
	return out
}

func (m maker) itemName(item any, i int) string {
	if of, ok := item.(map[string]any); ok && of["a"] != nil {
		return "k:" + jsonOf(map[string]any{"a": of["a"]})
	}
	if _, isMap := item.(map[string]any); !isMap && m.IntN(2) == 0 {
		return "v:" + jsonOf(item)
	}
	return "i:" + strconv.Itoa(i)
}

func jsonOf(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// covered describes the input of P, one line for each place: its value, or that it is owned and absent.
func covered(live any, exists bool, owned Fields, at string) []string {
	if exists && owned.IsLeaf() {
		return whole(live, at)
	}
	out, found := []string{}, map[string]int{}
	m, isMap := live.(map[string]any)
	list, isList := live.([]any)
	switch {
	case !exists:
		out = append(out, at+" is absent")
	case isMap:
		out = append(out, at+" is a map")
	case isList:
		out = append(out, at+" is a list")
	default:
		out = append(out, at+" = "+jsonOf(live))
	}
	it, items := owned.Items(), 0
	for i, item := range list {
		if below, ok := it.Of(item, i); ok {
			name := string(it.buf)
			if found[name]++; found[name] > 1 {
				name = strconv.Itoa(found[name]) + name
			}
			out = append(out, valuesAndAbsent(item, below, fmt.Sprintf("%s[%d]", at, items), at+"/"+name)...)
			items++
		}
	}
	for key := range owned {
		below, _ := owned.Below(key)
		name, isField := CutField(key)
		value, there := m[name]
		switch {
		case key == ownDot && exists:
		case isField && there:
			out = append(out, covered(value, true, below, at+"/"+key)...)
		case found[plainName(key)] == 0:
			out = append(out, covered(nil, false, below, at+"/"+plainName(key))...)
		}
	}
	slices.Sort(out)
	return out
}

// whole describes a value that is covered as a whole, in the same form as one covered part by part.
func whole(live any, at string) []string {
	var out []string
	switch live := live.(type) {
	case map[string]any:
		out = append(out, at+" is a map")
		for key, value := range live {
			out = append(out, whole(value, at+"/f:"+key)...)
		}
	case []any:
		out = append(out, at+" is a list")
		for i, item := range live {
			out = append(out, whole(item, fmt.Sprintf("%s[%d]", at, i))...)
		}
	default:
		out = append(out, at+" = "+jsonOf(live))
	}
	slices.Sort(out)
	return out
}

// valuesAndAbsent names an item by its index for values, and by its name for what is absent.
func valuesAndAbsent(item any, owned Fields, byNumber, byName string) []string {
	out := covered(item, true, owned, byNumber)
	for i, line := range out {
		if strings.HasSuffix(line, " is absent") {
			out[i] = byName + strings.TrimPrefix(line, byNumber)
		}
	}
	return out
}

// plainName returns the name of an item without unnecessary escapes.
func plainName(key string) string {
	prefix, text, ok := strings.Cut(key, ":")
	var v any
	if !ok || prefix == "f" || json.Unmarshal([]byte(text), &v) != nil {
		return key
	}
	return prefix + ":" + jsonOf(v)
}

func sumOf(obj map[string]any, owned Fields) canonical.Sum { return owned.Sum(obj) }

// TestSumIsExact: P is equal if and only if the owned values and the owned but absent places are equal.
func TestSumIsExact(t *testing.T) {
	m := maker{rand.New(rand.NewPCG(1, 2))}
	byP, byText := map[canonical.Sum]string{}, map[string]canonical.Sum{}
	alike := 0
	for range 20_000 {
		obj := m.object(3)
		owned := m.fields(obj, 4)
		if owned.IsLeaf() {
			continue
		}
		text := strings.Join(covered(obj, true, owned, ""), "\n")
		p := sumOf(obj, owned)
		if other, ok := byP[p]; ok && other != text {
			t.Fatalf("one P for\n%s\n\nand\n%s\n\n%s\n%s", other, text, jsonOf(obj), jsonOf(owned))
		}
		if other, ok := byText[text]; ok {
			if alike++; other != p {
				t.Fatalf("two Ps for\n%s\n\n%s\n%s", text, jsonOf(obj), jsonOf(owned))
			}
		}
		byP[p], byText[text] = text, p
	}
	if alike < 500 || len(byP) < 500 {
		t.Errorf("only %d of %d are alike", alike, len(byP))
	}
}

// TestLostOwnershipChangesSum: if another writer takes a field from us, P changes, even if the field is absent. It need
// not change if a place whose parts were all ours becomes ours as a whole, or the reverse: that covers the same values.
func TestLostOwnershipChangesSum(t *testing.T) {
	m := maker{rand.New(rand.NewPCG(3, 4))}
	changed := 0
	for range 2_000 {
		obj := m.object(3)
		owned := m.fields(obj, 4)
		p, text := sumOf(obj, owned), strings.Join(covered(obj, true, owned, ""), "\n")
		for _, less := range withoutEachPath(owned) {
			if less.IsLeaf() || owned.IsLeaf() {
				continue
			}
			if same := sumOf(obj, less) == p; same != (strings.Join(covered(obj, true, less, ""), "\n") == text) {
				t.Fatalf("P stays: %v\n%s\n%s\n%s", same, jsonOf(obj), jsonOf(owned), jsonOf(less))
			} else if !same {
				changed++
			}
		}
	}
	if changed < 2_000 {
		t.Errorf("only %d losses were seen", changed)
	}
}

// withoutEachPath returns f without each single path in turn, and without places that become empty.
func withoutEachPath(f Fields) []Fields {
	var out []Fields
	for _, key := range slices.SortedFunc(maps.Keys(f), cmp.Compare[string]) {
		below, ok := f.Below(key)
		if !ok || key == ownDot {
			continue
		}
		without := maps.Clone(f)
		delete(without, key)
		out = append(out, without)
		for _, less := range withoutEachPath(below) {
			if len(less) == 0 {
				continue
			}
			with := maps.Clone(f)
			with[key] = map[string]any(less)
			out = append(out, with)
		}
	}
	return out
}
