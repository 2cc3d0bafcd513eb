package render

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/corollary-dev/corollary/pkg/render/functions"
	"github.com/corollary-dev/corollary/pkg/render/parsing"
	"github.com/corollary-dev/corollary/pkg/render/program"
	"github.com/corollary-dev/corollary/pkg/render/values"
)

// A rendering is limited by its total allocations, which exceed what it uses at any time; its time has a very generous
// limit, because the machine may be busy.
const (
	mostAllocated = 96 << 20
	mostTime      = time.Minute
)

// hostile are values that a user can write into a custom resource, by the type that functions expect.
var hostile = struct {
	texts, numbers, lists, maps []any
}{
	texts: []any{
		"", "a", strings.Repeat("a ", 1<<19), strings.Repeat("x", 1<<20), strings.Repeat("\n", 1<<19), strings.Repeat("\x00\"", 1<<18),
		strings.Repeat("\xff\xfe", 1<<18), strings.Repeat("é", 1<<18), "%1000000000d", strings.Repeat("%[1]999999d", 1<<10),
		strings.Repeat("%*d%[1]q", 1<<10),
		"((a{100}){100}){10}", strings.Repeat("(", 1000) + strings.Repeat(")", 1000), "(a*)*(b|c*)*$", strings.Repeat(`\pL`, 1000), "(?i)" +
			strings.Repeat("[^a]", 900), "",
		strings.Repeat("$0", 1<<17), strings.Repeat("[", 1<<18), "[" + strings.Repeat("{},", 1<<17) + "1]", strings.Repeat("a,", 1<<18),
		"1e999999999", strings.Repeat("9", 1<<19),
		">=" + strings.Repeat("1.", 1<<18), "~1 || " + strings.Repeat("<2 || ", 1<<15) + "1", "http://" + strings.Repeat("%41", 1<<18), "../" +
			strings.Repeat("a/../", 1<<17),
	},
	numbers: []any{int64(0), int64(1), int64(-1), int64(7), int64(math.MinInt64), int64(math.MaxInt64), int64(math.MinInt64 + 1), int64(1e18),
		int64(1 << 20), math.NaN(), math.Inf(1), 1e308, -1e308, 5e-324, 0.5},
	lists: []any{l{}, l{nil}, many(100_000, int64(1)), many(100_000, "a"), many(1000, strings.Repeat("b", 1<<20)), nested(9000),
		distinct(50_000), many(50_000, m{"a": "b"})},
	maps: []any{m{}, m{"a": nil}, wide(50_000), m{"a": nested(9000)}, m{"scheme": strings.Repeat("\xff", 1<<20),
		"host": strings.Repeat("%", 1<<19)}, m{"a": many(1000, strings.Repeat("c", 1<<20))}},
}

func many(n int, v any) l {
	out := make(l, n)
	for i := range out {
		out[i] = v
	}
	return out
}

func distinct(n int) l {
	out := make(l, n)
	for i := range out {
		out[i] = fmt.Sprint("item", i*7919%n)
	}
	return out
}

func nested(n int) any {
	var v any = "leaf"
	for i := range n {
		if i%2 == 0 {
			v = l{v}
		} else {
			v = m{"a": v}
		}
	}
	return v.(m)["a"]
}

func wide(n int) m {
	out := make(m, n)
	for i := range n {
		out[fmt.Sprint("key", i)] = int64(i)
	}
	return out
}

// definitions makes values that are small in memory and large as text.
var definitions = map[string]string{
	"$dag":   `{{ $dag := dict "a" "b" }}{{ range until 60 }}{{ $dag = dict "a" $dag "b" $dag }}{{ end }}`,
	"$lists": `{{ $lists := list 1 }}{{ range until 60 }}{{ $lists = list $lists $lists }}{{ end }}`,
	"$deep":  `{{ $deep := dict }}{{ range until 2000 }}{{ $deep = dict "a" $deep }}{{ end }}`,
}

// argument is an expression for an argument, and the value of the upstream that it reads.
type argument struct {
	text  string
	value any
}

// arguments returns hostile arguments for a parameter.
func arguments(param reflect.Type, i int) []argument {
	var out []argument
	add := func(format string, values []any) {
		for _, v := range values {
			out = append(out, argument{fmt.Sprintf(format, i), v})
		}
	}
	kind := reflect.Interface
	if param != nil {
		kind = param.Kind()
	}
	switch kind {
	case reflect.String:
		add(".v%d", hostile.texts)
	case reflect.Int, reflect.Int64:
		add("(int .v%d)", hostile.numbers)
	case reflect.Float64:
		add("(float64 .v%d)", hostile.numbers)
	case reflect.Uint32:
		add("1", []any{nil})
	case reflect.Map:
		add(".v%d", hostile.maps)
		add("$dag", []any{nil})
		add("$deep", []any{nil})
	default:
		add(".v%d", slices.Concat(hostile.texts, hostile.numbers, hostile.lists, hostile.maps))
		add("$dag", []any{nil})
		add("$lists", []any{nil})
		add("$deep", []any{nil})
	}
	return out
}

// parameters returns the types of a function's parameters for a call with n arguments; nil if any type fits.
func parameters(name string, n int) []reflect.Type {
	out := make([]reflect.Type, n)
	ft := functions.Type(name)
	if slices.Contains([]string{"param", "variable", "input", "downstream", "include"}, name) {
		ft = reflect.TypeFor[func(string, any) any]()
	}
	if ft == nil {
		return out
	}
	for i := range out {
		switch last := ft.NumIn() - 1; {
		case ft.IsVariadic() && i >= last:
			out[i] = ft.In(last).Elem()
		case i <= last:
			out[i] = ft.In(i)
		}
	}
	return out
}

// call returns a template that calls a function with the arguments that choose selects, and its upstream.
func call(name string, n int, choose func(n int) int) (string, m) {
	up, text := m{}, name
	for i, param := range parameters(name, n) {
		all := arguments(param, i)
		arg := all[choose(len(all))]
		text += " " + arg.text
		up[fmt.Sprint("v", i)] = arg.value
	}
	text = "a: {{ " + text + " }}\nb: {{ list (" + text + ") | toJson }}"
	for name, definition := range definitions {
		if strings.Contains(text, name) {
			text = definition + text
		}
	}
	return text, up
}

// measured renders and fails the test if that takes too much memory or time.
func measured(t *testing.T, template string, up m) (doc map[string]any, err error) {
	t.Helper()
	tmpl, err := Compile(template, Options{})
	if err != nil {
		return nil, err
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := time.Now()
	doc, err = tmpl.Execute(program.Data{Upstream: up, Budget: patient()})
	took := time.Since(start)
	runtime.ReadMemStats(&after)
	if made := after.TotalAlloc - before.TotalAlloc; made > mostAllocated*allocationFactor {
		t.Errorf("%q allocates %d MiB (%v)", values.Short(template), made>>20, err)
	}
	if took > mostTime {
		t.Errorf("%q takes %s (%v)", values.Short(template), took, err)
	}
	if err != nil && len(err.Error()) > 2000 {
		t.Errorf("%q: an error of %d bytes", values.Short(template), len(err.Error()))
	}
	var known *parsing.Error
	if err != nil && (!errors.As(err, &known) || strings.Contains(known.Problem, "recovered from a panic")) {
		t.Errorf("%q: %v", values.Short(template), err)
	}
	return doc, err
}

// TestHostileArguments calls every function with values chosen to hang or crash the process.
func TestHostileArguments(t *testing.T) {
	const each = 8
	for _, name := range functions.Names() {
		random := rand.New(rand.NewPCG(1, 2))
		least, most := functions.Arity(name)
		for i := range each {
			n := min(max(least, 1)+i%3, most)
			template, up := call(name, n, random.IntN)
			_, _ = measured(t, template, up) // fails the test if rendering takes too much
		}
	}
}

// hostileUpstream is what harmless templates are rendered for.
var hostileUpstream = sync.OnceValue(func() m {
	env := make(l, 80_000)
	for i := range env {
		env[i] = m{"name": fmt.Sprint("NAME_", i), "value": "v"}
	}
	return m{
		"min": int64(math.MinInt64), "max": int64(math.MaxInt64), "n": int64(1e15), "env": env, "big": strings.Repeat("x y\n", 1<<18),
		"wide": wide(30_000), "accents": strings.Repeat("é", 1<<18), "list": distinct(30_000), "text": strings.Repeat("a", 1<<19),
		"pattern": "(a*)*(b|c*)*$", "empty": "", "bracket": "[", "comment": many(60_000, "c"), "depth": many(20_000, "d"),
		"format": strings.Repeat("%[1]999999d", 100), "m": m{"a": "b"},
	}
})

// ofHostile is what ends the rendering of a template for the hostile upstream: a limit, another error, or nothing.
func ofHostile(t *testing.T, template string, _ Options) string {
	t.Helper()
	switch _, err := measured(t, template, hostileUpstream()); {
	case err == nil:
		return "harmless"
	case errors.Is(err, values.ErrLimit):
		return fmt.Sprintf("limit: %.300v", err)
	default:
		return fmt.Sprintf("%.300v", err)
	}
}

// FuzzFunctions calls functions with hostile values that the fuzzer chooses.
func FuzzFunctions(f *testing.F) {
	names := functions.Names()
	for i := range names {
		f.Add(i, uint64(i), "a")
	}
	f.Fuzz(func(t *testing.T, function int, seed uint64, s string) {
		name := names[uint(function)%uint(len(names))]
		least, most := functions.Arity(name)
		random := rand.New(rand.NewPCG(seed, 1))
		template, up := call(name, min(max(least, 1)+random.IntN(3), most), random.IntN)
		for _, key := range slices.Sorted(maps.Keys(up)) {
			if random.IntN(4) == 0 {
				up[key] = s
			}
		}
		_, _ = measured(t, template, up) // as above
	})
}
