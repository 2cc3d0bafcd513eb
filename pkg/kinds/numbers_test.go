package kinds

import (
	"math"
	"testing"

	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/corollary-dev/corollary/internal/must"
)

// TestNumbersOfBuiltinKinds: every integer field of every built-in kind takes the numbers that it can hold, and no
// other.
func TestNumbersOfBuiltinKinds(t *testing.T) {
	source := must.Get(Offline()).In(t)
	fields := 0
	for _, builtin := range Builtins() {
		kind := must.Get(source.Kind(builtin.GVK)).In(t)
		integersIn(kind.Schema, 0, func(schema *spec.Schema, in func(v any) any) {
			fields++
			takes := map[any]bool{int64(1): true, int64(math.MinInt32): true, int64(math.MaxInt32): true, 1.5: false, 1e300: false, "a": true, nil: true,
				int64(math.MaxInt32 + 1): schema.Format != "int32", int64(math.MinInt32 - 1): schema.Format != "int32", int64(math.MaxInt64): schema.Format != "int32"}
			for v, want := range takes {
				doc := in(v).(map[string]any)
				if err := CheckNumbers(doc, kind.Schema); (err == nil) != want {
					t.Errorf("%s: %v: %v", kind.GVK, doc, err)
				}
			}
		})
	}
	if fields < 1000 {
		t.Errorf("only %d fields were looked at", fields)
	}
}

// integersIn calls see with each integer field of a schema, and with what makes a document of a value there.
func integersIn(schema *spec.Schema, depth int, see func(schema *spec.Schema, in func(v any) any)) {
	schema = PlainSchema(schema)
	if schema == nil || depth > 12 {
		return
	}
	if len(schema.Type) == 1 && schema.Type[0] == "integer" {
		see(schema, func(v any) any { return v })
	}
	integersIn(ItemSchema(schema), depth+1, func(s *spec.Schema, in func(v any) any) {
		see(s, func(v any) any { return []any{in(v)} })
	})
	integersIn(ValueSchema(schema), depth+1, func(s *spec.Schema, in func(v any) any) {
		see(s, func(v any) any { return map[string]any{"key": in(v)} })
	})
	for name, property := range schema.Properties {
		integersIn(&property, depth+1, func(s *spec.Schema, in func(v any) any) {
			see(s, func(v any) any { return map[string]any{name: in(v)} })
		})
	}
}
