package drift_test

import (
	"fmt"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/corollary-dev/corollary/pkg/drift"
)

func TestAbandoned(t *testing.T) {
	for _, row := range []struct{ reason, owned, doc, after, want string }{
		{"beside what we had in a map", `{spec: {c: {s: W, w: {u: x}}}}`, `{spec: {c: {s: N}}}`, `{spec: {c: {s: N, w: {b: {d: 1}, l: [1]}}}}`, "[.spec.c.w.b.d .spec.c.w.l]"},
		{"the map is still in the document", `{spec: {c: {w: {u: x}}}}`, `{spec: {c: {w: {}}}}`, `{spec: {c: {w: {b: 1}}}}`, "[]"},
		{"we had nothing in it", `{spec: {s: x}}`, `{spec: {}}`, `{spec: {w: {b: 1}}}`, "[]"},
		{"it goes with what we had", `{spec: {w: {u: x}}}`, `{spec: {}}`, `{spec: {}}`, "[]"},
		{"annotations and the status of others", `{metadata: {annotations: {a: b}}, status: {a: b}}`, `{metadata: {}}`,
			`{metadata: {annotations: {other: x}}, status: {other: x}}`, "[]"},
	} {
		var of [3]map[string]any
		for i, text := range []string{row.owned, row.doc, row.after} {
			if err := yaml.Unmarshal([]byte(text), &of[i]); err != nil {
				t.Fatal(err)
			}
		}
		if got := fmt.Sprint(drift.Abandoned(of[0], of[1], of[2])); got != row.want {
			t.Errorf("%s: %s, want %s", row.reason, got, row.want)
		}
	}
}
