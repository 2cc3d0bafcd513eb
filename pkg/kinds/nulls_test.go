package kinds_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/yaml"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/pkg/kinds"
)

func TestDropNulls(t *testing.T) {
	var s spec.Schema
	must.Do(t, yaml.Unmarshal([]byte(`
type: object
properties:
  metadata: {type: object, x-kubernetes-preserve-unknown-fields: true}
  spec:
    type: object
    properties:
      text: {type: string}
      maybe: {type: string, nullable: true}
      free: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {known: {type: string}}}
      texts: {type: object, additionalProperties: {type: string}}
      maybes: {type: object, additionalProperties: {type: string, nullable: true}}
      list: {type: array, items: {type: object, properties: {a: {type: string}, b: {type: string, nullable: true}}}}
`), &s))
	custom, builtin := schema.FromAPIVersionAndKind("example.com/v1", "Thing"), schema.FromAPIVersionAndKind("apps/v1", "Deployment")
	for _, row := range []struct {
		reason, in, want string
		gvk              schema.GroupVersionKind
		schema           *spec.Schema
	}{
		{"a typed field cannot be null", `{spec: {text: null}}`, `{spec: {}}`, custom, &s},
		{"a nullable field can", `{spec: {maybe: null}}`, `{spec: {maybe: null}}`, custom, &s},
		{"below a free-form field, null is a value", `{spec: {free: {a: null, b: {c: [{d: null}]}}}}`, `{spec: {free: {a: null, b: {c: [{d: null}]}}}}`, custom, &s},
		{"what a free-form field declares has its type", `{spec: {free: {known: null}}}`, `{spec: {free: {}}}`, custom, &s},
		{"the field itself is an object", `{spec: {free: null}}`, `{spec: {}}`, custom, &s},
		{"values of a map have a type", `{spec: {texts: {a: null}, maybes: {a: null}}}`, `{spec: {texts: {}, maybes: {a: null}}}`, custom, &s},
		{"so have fields of items", `{spec: {list: [{a: null, b: null}]}}`, `{spec: {list: [{b: null}]}}`, custom, &s},
		{"an item stays", `{spec: {list: [null]}}`, `{spec: {list: [null]}}`, custom, &s},
		{"an undeclared field is not stored", `{spec: {other: {a: null}, another: null}}`, `{spec: {other: {}}}`, custom, &s},
		{"metadata is not of the kind", `{metadata: {labels: {a: null}}, spec: null}`, `{metadata: {labels: {}}}`, custom, &s},
		{"without a schema, nothing is known", `{spec: {maybe: null, a: {b: null}}}`, `{spec: {a: {}}}`, custom, nil},
		{"built-in kinds have no nulls", `{spec: {maybe: null}}`, `{spec: {}}`, builtin, &s},
	} {
		var got, want map[string]any
		must.Do(t, errors.Join(yaml.Unmarshal([]byte(row.in), &got), yaml.Unmarshal([]byte(row.want), &want)))
		kind := kinds.Kind{GVK: row.gvk, Schema: row.schema}
		if kind.DropNulls(got); !cmp.Equal(got, want) {
			t.Errorf("%s: %s", row.reason, cmp.Diff(want, got))
		}
	}
}
