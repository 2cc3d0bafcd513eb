package rules

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/corollary-dev/corollary/internal/golden"
	"github.com/corollary-dev/corollary/internal/must"
)

// TestReads runs the expressions in testdata/reads.txt.
func TestReads(t *testing.T) {
	all := envs(t)
	golden.Table(t, "testdata/reads.txt", func(t *testing.T, expr string) string {
		return inBoth(all, func(env *Env) string {
			p := must.Get(env.Any(expr, Upstream, "")).In(t)
			if text := readsText(p.Reads("self")); text != "" {
				return text
			}
			return "nothing"
		})
	})
}

// inBoth returns the results with and without a schema; one result if they are equal.
func inBoth(all map[string]*Env, result func(env *Env) string) string {
	typed, untyped := result(all["typed"]), result(all["untyped"])
	if typed == untyped {
		return typed
	}
	return "typed: " + typed + "\nuntyped: " + untyped
}

func readsText(paths [][]string, whole bool) string {
	if whole {
		return "*"
	}
	texts := make([]string, len(paths))
	for i, path := range paths {
		texts[i] = strings.Join(path, ".")
	}
	return strings.Join(texts, ",")
}

func TestReadsOfDownstreams(t *testing.T) {
	env := envs(t)["typed"]
	p, err := env.Any("downstreams.web__dash__server.status.x == downstreams.?deployment.?status.?availableReplicas.orValue(0)", Status, "")
	if err != nil {
		t.Fatal(err)
	}
	must.Same(t, "deployment.status.availableReplicas,web-server.status.x", readsText(p.Reads("downstreams")))
	must.Same(t, "", readsText(p.Reads("self")), "of self, want nothing")
}

// TestReadsOfSeveralDownstreams: whole objects are not needed for the names of a downstream's objects, or for one field
// of each.
func TestReadsOfSeveralDownstreams(t *testing.T) {
	env, err := NewEnv(EnvOptions{Downstreams: map[string]*spec.Schema{"worker": nil, "one": nil}, ForEach: map[string]bool{"worker": true}})
	if err != nil {
		t.Fatal(err)
	}
	for expr, want := range map[string]string{
		"downstreams.worker.map(n, n)": "worker.*.metadata.name",
		"downstreams.worker.size()":    "worker.*.metadata.name",
		"size(downstreams.worker) > 1": "worker.*.metadata.name",
		"downstreams.worker.filter(n, downstreams.worker[n].?status.?x.orValue(0) > 0).size()": "worker.*.metadata.name,worker.*.status.x",
		"downstreams.worker.all(n, downstreams.worker[n].status.y)":                            "worker.*.metadata.name,worker.*.status.y",
		"downstreams.worker['a'].status.x":                                                     "worker.a.status.x",
		"downstreams.worker[self.spec.name].status.x":                                          "worker",
		"downstreams.worker.transformList(n, o, o)":                                            "worker",
		"downstreams.worker.map(n, downstreams.worker)":                                        "worker",
		"[1].map(n, downstreams.worker)":                                                       "worker",
		"downstreams.worker == downstreams.worker":                                             "worker",
		"downstreams.one.map(n, n)":                                                            "one",
		"self.spec.names.map(n, downstreams.worker[n].status.x)":                               "worker.*.status.x",
		"self.spec.names.map(n, downstreams.worker[?n].?status.?x.orValue(''))":                "worker.*.status.x",
	} {
		p := must.Get(env.Any(expr, Status, "")).In(t)
		must.Same(t, want, readsText(p.Reads("downstreams")), expr, "reads")
	}
}

func TestPrune(t *testing.T) {
	object := map[string]any{"a": map[string]any{"b": int64(1), "c": int64(2)}, "d": "text", "e": nil, "f": map[string]any{"g": []any{}}}
	for _, tc := range []struct {
		reason string
		paths  [][]string
		want   map[string]any
	}{
		{"nothing", nil, map[string]any{}},
		{"one field", [][]string{{"a", "b"}}, map[string]any{"a": map[string]any{"b": int64(1)}}},
		{"what is on the way stays, even empty", [][]string{{"a", "x", "y"}}, map[string]any{"a": map[string]any{}}},
		{"what is no map stays as it is", [][]string{{"d", "x"}, {"e", "x"}}, map[string]any{"d": "text", "e": nil}},
		{"a list stays whole", [][]string{{"f", "g", "x"}}, map[string]any{"f": map[string]any{"g": []any{}}}},
		{"everything", [][]string{{}}, object},
	} {
		must.Same(t, tc.want, Prune(object, tc.paths), tc.reason)
	}
}

// checkReads evaluates an expression for the object and for the object cut down to Reads, and fails if the results
// differ. It reports whether there was anything to compare.
func checkReads(t *testing.T, env *Env, expr string, object map[string]any) bool {
	t.Helper()
	p, err := env.Any(expr, Upstream, "")
	if err != nil {
		return false
	}
	return compareReads(t, p, object)
}

func compareReads(t *testing.T, p *Program, object map[string]any) bool {
	t.Helper()
	paths, whole := p.Reads("self")
	if whole {
		return false
	}
	want, got := outcome(p, object), outcome(p, Prune(object, paths))
	if !reflect.DeepEqual(want, got) {
		t.Errorf("%s\non %v: %v\nreads %v\non %v: %v", p.Text(), object, want, paths, Prune(object, paths), got)
	}
	return true
}

// outcome returns the result, or the text of the error.
func outcome(p *Program, object map[string]any) any {
	v, err := p.Eval(Vars{Self: object}, nil)
	var failed *EvalError
	if errors.As(err, &failed) {
		return "error: " + failed.Problem
	}
	return v
}

// TestReadsSuffice tests random expressions and objects: the caches keep only what Reads returns.
func TestReadsSuffice(t *testing.T) {
	all := envs(t)
	compared := 0
	for seed := range uint64(1500) {
		source := rand.New(rand.NewPCG(seed, 1))
		w := &writer{pick: func(n int) int { return source.IntN(n) }}
		expr, object := w.expr(4), w.object(3)
		if checkReads(t, all["untyped"], expr, object) {
			compared++
		}
	}
	if compared < 300 {
		t.Errorf("only %d expressions could be compared", compared)
	}
}

// TestReadsSufficeTyped does the same with expressions that fit the schema, and objects with missing fields.
func TestReadsSufficeTyped(t *testing.T) {
	exprs := []string{
		"self.spec.replicas", "self.spec.?replicas.orValue(3)", "has(self.spec.tag)", "has(self.spec.config.nested)",
		"self.spec.node__dash__pool",
		"self.spec.__namespace__ + self.spec.namespace", "self.spec.env.map(e, e.name)", "self.spec.env.all(self, has(self.value))",
		"self.spec.labels.map(k, k)", "self.spec.labels.transformMap(k, v, v + k)", "self.metadata.labels['tools.example.com/app']",
		"self.metadata.labels[?'x'].orValue('none')", "self.spec.zones == self.spec.oldZones", "self.spec.zones + self.spec.oldZones",
		"self.spec.parts.map(p, p.?extra.?x)", "self.spec.config.?nested.?deep", "self.spec.template.metadata.name",
		"self.spec.since > timestamp(self.metadata.creationTimestamp)",
		"self.status.conditions.exists(c, c.type == 'Ready' && c.status == 'True')", "self.spec.enabled ? self.spec.image : self.metadata.name",
		"self.?spec.?port == self.?spec.?quota[?'pods']", "self.spec.config", "self.spec.timeout", "self.spec.data", "self.spec.ratio * 2.0",
		"self.spec.env == self.spec.env", "self.spec.template == self.spec.template", "self.spec.parts == self.spec.parts",
	}
	for kind, env := range envs(t) {
		for i, expr := range exprs {
			p, err := env.Any(expr, Upstream, "")
			if err != nil {
				t.Fatalf("%s: %s: %v", kind, expr, err)
			}
			for seed := range uint64(40) {
				object := testObject()
				removeFields(object, rand.New(rand.NewPCG(seed, uint64(i))))
				compareReads(t, p, object)
			}
		}
	}
}

// removeFields removes fields, or replaces them.
func removeFields(object map[string]any, source *rand.Rand) {
	for _, name := range slices.Sorted(maps.Keys(object)) {
		switch source.IntN(12) {
		case 0:
			delete(object, name)
		case 1:
			object[name] = nil
		case 2:
			object[name] = map[string]any{}
		case 3:
			object[name] = "something else"
		default:
			if m, ok := object[name].(map[string]any); ok {
				removeFields(m, source)
			}
		}
	}
}

// addRandom seeds a fuzz target with 64 sequences of bytes, the same for each stream.
func addRandom(f *testing.F, stream uint64) {
	f.Helper()
	for seed := range 64 {
		source := rand.New(rand.NewPCG(uint64(seed), stream))
		data := make([]byte, 256)
		for i := range data {
			data[i] = byte(source.IntN(256))
		}
		f.Add(data)
	}
}

func FuzzReadsSuffice(f *testing.F) {
	addRandom(f, 2)
	env := must.Get(NewEnv(EnvOptions{})).In(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		w := &writer{pick: func(n int) int {
			if len(data) == 0 {
				return 0
			}
			b := data[0]
			data = data[1:]
			return int(b) % n
		}}
		expr, object := w.expr(4), w.object(3)
		checkReads(t, env, expr, object)
	})
}

// writer writes random expressions and objects with a small vocabulary, so that they match often.
type writer struct {
	pick func(n int) int
	vars []string // of the enclosing macros
}

var names = []string{"a", "b", "c", "self", "a__b", "a__dash__b"}

func (w *writer) name() string { return names[w.pick(len(names))] }

// object writes a map; an escaped name may be present as it is, or unescaped.
func (w *writer) object(depth int) map[string]any {
	members := map[string]any{}
	for range w.pick(5) {
		name := w.name()
		if name == "a__dash__b" && w.pick(2) == 0 {
			name = "a-b"
		}
		members[name] = w.value(depth - 1)
	}
	return members
}

func (w *writer) value(depth int) any {
	switch kind := w.pick(8); {
	case kind < 4 && depth > 0:
		return w.object(depth)
	case kind == 4 && depth > 0:
		return []any{w.value(depth - 1), w.value(depth - 1)}
	case kind == 5:
		return nil
	case kind == 6:
		return "a"
	}
	return int64(w.pick(3))
}

// path writes a selection below a variable.
func (w *writer) path(depth int) string {
	text := "self"
	switch w.pick(5) {
	case 0:
		text = ".self"
	case 1:
		if len(w.vars) > 0 {
			text = w.vars[w.pick(len(w.vars))]
		}
	}
	for range w.pick(4) {
		switch w.pick(6) {
		case 0:
			text += "['" + w.name() + "']"
		case 1:
			text += ".?" + w.name()
		case 2:
			text += "[?'" + w.name() + "']"
		case 3:
			if depth > 0 {
				text += "[" + w.expr(depth-1) + "]"
			}
		default:
			text += "." + w.name()
		}
	}
	return text
}

func (w *writer) expr(depth int) string {
	if depth == 0 {
		return []string{w.path(0), "1", "'a'", "null", "[1]"}[w.pick(5)]
	}
	sub := func() string { return w.expr(depth - 1) }
	switch w.pick(12) {
	case 0:
		return "has(" + w.path(depth-1) + "." + w.name() + ")"
	case 1:
		return fmt.Sprintf("(%s == %s)", sub(), sub())
	case 2:
		return fmt.Sprintf("(%s in dyn(%s))", sub(), sub())
	case 3:
		return fmt.Sprintf("(dyn(%s) ? dyn(%s) : dyn(%s))", sub(), sub(), sub())
	case 4:
		return fmt.Sprintf("(dyn(%s) || dyn(%s))", sub(), sub())
	case 5:
		return "[dyn(" + sub() + "), dyn(" + sub() + ")]"
	case 6:
		return "{'a': dyn(" + sub() + ")}." + w.name()
	case 7:
		return "size(dyn(" + sub() + "))"
	case 8, 9:
		variable := []string{"self", "x", "a"}[w.pick(3)]
		over := w.path(depth - 1)
		w.vars = append(w.vars, variable)
		body := w.expr(depth - 1)
		w.vars = w.vars[:len(w.vars)-1]
		return fmt.Sprintf("dyn(%s).%s(%s, dyn(%s))", over, []string{"all", "exists", "map", "filter", "exists_one"}[w.pick(5)], variable, body)
	case 10:
		return "(" + w.path(depth-1) + ")." + w.name()
	}
	return w.path(depth - 1)
}
