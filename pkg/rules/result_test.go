package rules

import (
	"encoding/json"
	"testing"

	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/corollary-dev/corollary/internal/must"
)

func TestResult(t *testing.T) {
	typed := spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"object"}, Properties: map[string]spec.Schema{
		"color": *spec.StringProperty(), "ready": *spec.BooleanProperty(), "at": *spec.DateTimeProperty(), "size": *spec.Int64Property(),
		"tags": *spec.ArrayProperty(spec.StringProperty()), "labels": *spec.MapProperty(spec.StringProperty()),
	}}}
	env := must.Get(NewEnv(EnvOptions{
		Self:        &spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"object"}, Properties: map[string]spec.Schema{"spec": typed}}},
		Downstreams: map[string]*spec.Schema{"d": nil},
	})).In(t)
	const anything = `{"x-kubernetes-preserve-unknown-fields":true}`
	for _, test := range []struct{ expr, want, reason string }{
		{"self.spec.color", `{"type":"string"}`, "what the schema says"},
		{"self.spec.at", `{"type":"string"}`, "a timestamp is its text"},
		{"self.spec.?size", `{"type":"integer","format":"int64"}`, "an optional is its value, or nothing"},
		{"self.spec.tags", `{"type":"array","items":{"type":"string"}}`, "a list"},
		{"self.spec.labels", `{"type":"object","additionalProperties":{"type":"string"}}`, "a map"},
		{"self.spec", `{"type":"object","x-kubernetes-preserve-unknown-fields":true}`, "an object, whatever is in it"},
		{"size(self.spec.tags) > 1", `{"type":"boolean"}`, "a comparison"},
		{"1.0 / 3.0", `{"type":"number"}`, "a calculation"},
		{"quantity('1')", `{"type":"string"}`, "a quantity is its text"},
		{"downstreams.d.status.x", ``, "nothing is known of the downstream"},
		{"downstreams.d.?status.?x.orValue(0)", `{"type":"integer","format":"int64"}`, "but the author says what it is where it is missing"},
		{"downstreams.d.?status.?x.orValue([])", `{"type":"array","items":` + anything + `}`, "a list of anything"},
		{"has(downstreams.d.status) ? downstreams.d.status.x : ''", `{"type":"string"}`, "or else"},
		{"has(downstreams.d.status) ? '1' : dyn(1)", `{"type":"string"}`, "what is hidden is not looked at"},
		{"has(downstreams.d.status) ? dyn('1') : dyn(1)", ``, "nor where both are"},
		{"'http://' + downstreams.d.status.host", `{"type":"string"}`, "text and something is text"},
		{"dyn(true) ? downstreams.d.?a.orValue(1) : downstreams.d.?b.orValue('')", ``, "one or the other"},
		{"[1, 2].map(i, downstreams.d.items[i])", `{"type":"array","items":` + anything + `}`, "a list of what is not known"},
	} {
		program, err := env.Any(test.expr, Status, "")
		if err != nil {
			t.Errorf("%s: %s: %v", test.reason, test.expr, err)
			continue
		}
		got := ""
		if s := program.Result(); s != nil {
			text := must.Get(json.Marshal(s)).In(t)
			got = string(text)
		}
		must.Same(t, test.want, got, test.reason, test.expr)
	}
}
