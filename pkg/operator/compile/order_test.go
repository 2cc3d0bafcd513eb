package compile_test

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/operator/desired"
)

// TestErrorsHaveOneOrder: what is wrong with a document is said in the same words each time, however many things are.
func TestErrorsHaveOneOrder(t *testing.T) {
	bad := map[string]any{"a b": "x", "c d": "y z", "e f": "x", "g": "h i"}
	for name, template := range map[string]string{
		"labels":      "metadata: {name: a, labels: {{ .spec }}}",
		"annotations": "metadata: {name: a, annotations: {{ .spec }}}",
		"identity":    "apiVersion: {{ .spec.g }}\nkind: {{ .spec.g }}\nmetadata: {name: a}",
	} {
		t.Run(name, func(t *testing.T) {
			source := must.Get(kinds.Offline()).In(t)
			p := compileTyped(t, source, "v1", "ConfigMap", template, "")
			up := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Thing",
				"metadata": map[string]any{"name": "a", "namespace": "b", "uid": "u"}, "spec": bad}}
			seen := map[string]bool{}
			for range 100 {
				w := p.Render(t.Context(), up, desired.Inputs{})
				if w.Objects[0].Err == nil {
					t.Fatal("nothing is wrong")
				}
				seen[fmt.Sprint(w.Objects[0].Err)] = true
			}
			if len(seen) != 1 {
				t.Errorf("%d errors: %v", len(seen), seen)
			}
		})
	}
}
