package convert_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/corollary-dev/corollary/internal/must"
)

// TestForgedAnnotationChangesNothingElse writes every field of the other version by the annotation. Admission policies
// see an object in one version, so the other one must not say something else: converted back by the rules alone, it is
// the object that was sent.
func TestForgedAnnotationChangesNothingElse(t *testing.T) {
	t.Parallel()
	// These versions differ: v1beta1 has hostPort, size, items[].title, free; v1 has host and port, level, items[].name,
	// zone.
	const old = `{hostPort: {type: string}, size: {type: string}, free: {type: string},
		items: {type: array, items: {type: object, properties: {title: {type: string}, old: {type: string}}}}}`
	const current = `{host: {type: string}, port: {type: integer}, level: {type: string}, zone: {type: string},
		items: {type: array, items: {type: object, properties: {name: {type: string}, new: {type: string}}}}}`
	const conversion = `
hub: v1
spokes:
  - version: v1beta1
    rules:
      - {move: .spec.size, to: .spec.level, values: {small: S, large: L}}
      - {forEach: .spec.items, rules: [{move: .title, to: .name}]}
    toHub:
      - {set: .spec.host, expression: "self.spec.hostPort.split(':')[0]"}
      - {set: .spec.port, expression: "int(self.spec.hostPort.split(':')[1])"}
      - {remove: [.spec.hostPort]}
    fromHub:
      - {set: .spec.hostPort, expression: "self.spec.host + ':' + string(self.spec.port)"}
      - {remove: [.spec.host, .spec.port]}
preserve: {annotation: example.com/kept}`
	c, problems := compile(t, crdOf(old, current), []byte(conversion))
	if len(problems) > 0 {
		t.Fatal(problems[0])
	}
	objects := map[string]map[string]any{
		"v1beta1": {"hostPort": "ok:80", "size": "small", "free": "f", "items": []any{map[string]any{"title": "a", "old": "o"}}},
		"v1":      {"host": "ok", "port": int64(80), "level": "S", "zone": "z", "items": []any{map[string]any{"name": "a", "new": "n"}}},
	}
	other := map[string]string{"v1beta1": "v1", "v1": "v1beta1"}
	// text is the JSON of a value; "" if there is none.
	text := func(value any, ok bool) string {
		if !ok {
			return ""
		}
		out := must.Get(json.Marshal(value)).In(t)
		return string(out)
	}
	convert := func(spec map[string]any, annotation, from, to string) map[string]any {
		metadata := map[string]any{"name": "a"}
		if annotation != "" {
			metadata["annotations"] = map[string]any{"example.com/kept": annotation}
		}
		obj := map[string]any{"apiVersion": "example.com/" + from, "kind": "Thing", "metadata": metadata, "spec": runtime.DeepCopyJSON(spec)}
		if err := c.Convert(t.Context(), obj, to); err != nil {
			t.Fatalf("%s to %s with %s: %v", from, to, annotation, err)
		}
		spec, _ = obj["spec"].(map[string]any)
		return spec
	}
	kept := 0
	for from, spec := range objects {
		to := other[from]
		honest := convert(spec, "", from, to)
		plain := convert(honest, "", to, from)
		fields := []string{`["spec"]`, `["spec","items"]`}
		for _, name := range []string{"hostPort", "size", "free", "host", "port", "level", "zone"} {
			fields = append(fields, fmt.Sprintf(`["spec",%q]`, name))
		}
		for _, path := range fields {
			var names []string
			must.Do(t, json.Unmarshal([]byte(path), &names))
			var back any = honest
			ok := true
			if len(names) > 1 {
				back, ok = honest[names[1]]
			}
			for _, value := range []string{`"evil"`, `"evil:1"`, `"large"`, `"L"`, `81`, `{"hostPort":"evil:1","host":"evil","port":80}`,
				`[{"title":"evil","name":"evil"}]`, `[]`, ""} {
				field := `"path":` + path
				if was := text(back, ok); was != "" {
					field += `,"back":` + was
				} else {
					field += `,"backAbsent":true`
				}
				if value != "" {
					field += `,"is":` + value
				} else {
					field += `,"absent":true`
				}
				forged := convert(spec, fmt.Sprintf(`{%q:{"fields":[{%s}]}}`, to, field), from, to)
				must.Same(t, plain, convert(forged, "", to, from), from, "with", field, to, "says something else")
				if !cmp.Equal(forged, honest) {
					kept++
				}
			}
		}
	}
	if kept == 0 {
		t.Error("no field was restored: fields that only the other version has are what the annotation is for")
	}
}
