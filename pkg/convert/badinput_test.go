package convert_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/pkg/convert"
	"github.com/corollary-dev/corollary/pkg/convert/prove"
	"github.com/corollary-dev/corollary/pkg/webhook"
)

// The API server accepts an answer only with the uid of its review, whether the conversion succeeded or not. A review
// without uid is not one of an API server.
func TestReviewUID(t *testing.T) {
	t.Parallel()
	h := hostPorts(t)
	send := func(body string) *httptest.ResponseRecorder {
		recorder := httptest.NewRecorder()
		h.ServeHTTP(recorder, httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body)))
		return recorder
	}
	for _, uid := range []string{"u-2", "\"quoted\"\n<&> \u2028 \u00e9", strings.Repeat("x", 100_000)} {
		for _, object := range []string{cronTab, strings.Replace(cronTab, "h:1", "h", 1)} { // the second one cannot be converted
			quoted := must.Get(json.Marshal(uid)).In(t)
			answer := send(strings.Replace(reviewOf("example.com/v1", object), `"u-1"`, string(quoted), 1))
			var out apiextensionsv1.ConversionReview
			if err := json.Unmarshal(answer.Body.Bytes(), &out); err != nil || out.Response == nil || string(out.Response.UID) != uid {
				t.Errorf("%.50q: answered %d %.200s: %v", uid, answer.Code, answer.Body, err)
			}
		}
	}
	for _, row := range []struct{ reason, uid, want string }{
		{"none", ``, "request.uid is missing"},
		{"an empty one", `"uid":"",`, "request.uid is missing"},
		{"null", `"uid":null,`, "request.uid is missing"},
		{"a number", `"uid":5,`, "not a ConversionReview"},
		{"an object", `"uid":{},`, "not a ConversionReview"},
	} {
		answer := send(strings.Replace(reviewOf("example.com/v1", cronTab), `"uid":"u-1",`, row.uid, 1))
		if answer.Code != http.StatusBadRequest || !strings.Contains(answer.Body.String(), row.want) {
			t.Errorf("%s: answered %d %s", row.reason, answer.Code, answer.Body)
		}
	}
}

// Two spokes whose moves go around in circles: a rule reads the object as it was, so no value is moved twice or
// overwritten.
func TestCyclicMoves(t *testing.T) {
	t.Parallel()
	var definition map[string]any
	fields := `{a: {type: string}, b: {type: string}, c: {type: string}}`
	must.Do(t, yaml.Unmarshal(crdOf(fields, fields), &definition))
	spec := definition["spec"].(map[string]any)
	versions := spec["versions"].([]any)
	third := runtime.DeepCopyJSONValue(versions[0]).(map[string]any)
	third["name"] = "v1alpha1"
	spec["versions"] = append(versions, third)
	crd := must.Get(yaml.Marshal(definition)).In(t)
	c, problems := compile(t, crd, []byte(`
hub: v1
spokes:
  - version: v1beta1
    rules: [{move: .spec.a, to: .spec.b}, {move: .spec.b, to: .spec.c}, {move: .spec.c, to: .spec.a}]
  - version: v1alpha1
    rules: [{move: .spec.b, to: .spec.a}, {move: .spec.c, to: .spec.b}, {move: .spec.a, to: .spec.c}]
`))
	if len(problems) > 0 {
		t.Fatal(problems[0])
	}
	object := func(version string, spec map[string]any) map[string]any {
		return map[string]any{"apiVersion": "example.com/" + version, "kind": "Thing", "metadata": map[string]any{"name": "x"}, "spec": spec}
	}
	for _, row := range []struct {
		from, to string
		spec     map[string]any
		want     string
	}{
		{"v1beta1", "v1", map[string]any{"a": "1", "b": "2", "c": "3"}, "map[a:3 b:1 c:2]"},
		{"v1alpha1", "v1", map[string]any{"a": "1", "b": "2", "c": "3"}, "map[a:2 b:3 c:1]"},
		{"v1beta1", "v1alpha1", map[string]any{"a": "1", "b": "2", "c": "3"}, "map[a:2 b:3 c:1]"},
		{"v1alpha1", "v1beta1", map[string]any{"a": "1", "b": "2", "c": "3"}, "map[a:3 b:1 c:2]"},
		{"v1beta1", "v1alpha1", map[string]any{"a": "1"}, "map[c:1]"},
	} {
		obj := object(row.from, runtime.DeepCopyJSON(row.spec))
		if err := c.Convert(t.Context(), obj, row.to); err != nil || fmt.Sprint(obj["spec"]) != row.want {
			t.Errorf("%v from %s to %s is %v, not %s: %v", row.spec, row.from, row.to, obj["spec"], row.want, err)
		}
		if err := c.Convert(t.Context(), obj, row.from); err != nil || !cmp.Equal(obj, object(row.from, row.spec)) {
			t.Errorf("%v from %s to %s and back is %v: %v", row.spec, row.from, row.to, obj, err)
		}
	}
	proof, err := prove.Prove(t.Context(), c, prove.Options{Seed: 1, Objects: 100})
	if err != nil || len(proof.Pairs) != 4 {
		t.Fatalf("%+v: %v", proof, err)
	}
	for _, pair := range proof.Pairs {
		if !pair.ByConstruction {
			t.Errorf("%s by %s is not lossless by construction: %+v", pair.From, pair.Via, pair.Counterexample)
		}
	}
}

// An annotation of preserve that ends too early says nothing: the object is converted as without it, and the annotation
// stays.
func TestTruncatedAnnotation(t *testing.T) {
	t.Parallel()
	c, problems := compile(t, crdOf(`{a: {type: string}}`, `{a: {type: string}, "n": {type: integer}, m: {type: object, additionalProperties: {type: string}}}`),
		[]byte("hub: v1\nspokes: [{version: v1beta1}]\npreserve: {annotation: example.com/kept}"))
	if len(problems) > 0 {
		t.Fatal(problems[0])
	}
	convertTo := func(obj map[string]any, version string) map[string]any {
		t.Helper()
		obj = runtime.DeepCopyJSON(obj)
		must.Do(t, c.Convert(t.Context(), obj, version))
		return obj
	}
	annotationsOf := func(obj map[string]any) map[string]any {
		return obj["metadata"].(map[string]any)["annotations"].(map[string]any)
	}
	hub := map[string]any{"apiVersion": "example.com/v1", "kind": "Thing",
		"metadata": map[string]any{"name": "x", "uid": "1", "annotations": map[string]any{"k": "v"}},
		"spec":     map[string]any{"a": "v", "n": int64(1<<53 + 1), "m": map[string]any{"\u00e9\"": "\\"}}}
	spoke := convertTo(hub, "v1beta1")
	whole := annotationsOf(spoke)["example.com/kept"].(string)
	if back := convertTo(spoke, "v1"); !cmp.Equal(back, hub) {
		t.Fatalf("with the whole annotation: %s", cmp.Diff(hub, back))
	}
	for end := range len(whole) {
		annotationsOf(spoke)["example.com/kept"] = whole[:end]
		without := runtime.DeepCopyJSON(spoke)
		delete(annotationsOf(without), "example.com/kept")
		want := convertTo(without, "v1")
		annotationsOf(want)["example.com/kept"] = whole[:end]
		if got := convertTo(spoke, "v1"); !cmp.Equal(got, want) {
			t.Errorf("%q: %s", whole[:end], cmp.Diff(want, got))
		}
	}
}

// wholeMetadata has fields of all kinds, and one that a newer API server may have.
const wholeMetadata = `{"name":"a","generateName":"a-","namespace":"ns","uid":"1","resourceVersion":"7","generation":9007199254740993,
	"creationTimestamp":"2026-01-02T03:04:05Z","deletionTimestamp":"2026-01-02T03:04:06Z","deletionGracePeriodSeconds":0,
	"finalizers":["example.com/f"],"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"p","uid":"2"}],"selfLink":"",
	"managedFields":[{"manager":"m","operation":"Apply","apiVersion":"example.com/v1beta1","fieldsV1":{"f:spec":{".":{},"f:a":{}}}}],
	"labels":{"l":"v"},"annotations":{"n":"\u2028<&>"},"newer":{"a":[null,1.5,9007199254740993]}}`

// Of metadata only labels and annotations may be changed: rules for anything else are refused, and the rest stays as it
// was sent, whether a conversion touches metadata or not.
func TestMetadataStays(t *testing.T) {
	t.Parallel()
	fields := `{a: {type: string}, l: {type: array, items: {type: string}}}`
	for _, field := range []string{
		"metadata", "metadata.name", "metadata.namespace", "metadata.generateName", "metadata.uid", "metadata.resourceVersion",
		"metadata.generation",
		"metadata.creationTimestamp", "metadata.deletionTimestamp", "metadata.finalizers", "metadata.ownerReferences", "metadata.managedFields",
		"metadata.labels", "metadata.annotations", "apiVersion", "kind",
	} {
		for _, rule := range []string{
			"rules: [{move: .spec.a, to: .FIELD}]", "rules: [{move: .FIELD, to: .spec.a}]", "rules: [{wrap: .FIELD, to: .spec.l}]",
			"rules: [{unwrap: .spec.l, to: .FIELD}]", "rules: [{default: .FIELD, value: x}]",
			"rules: [{forEach: .FIELD, rules: [{move: .a, to: .b}]}]",
			"toHub: [{set: .FIELD, expression: self.spec.a}]", "fromHub: [{set: .FIELD, expression: self.spec.a}]", "toHub: [{remove: [.FIELD]}]",
		} {
			rule = strings.ReplaceAll(rule, "FIELD", field)
			_, problems := compile(t, crdOf(fields, fields), conversionOf("    "+rule))
			if !slices.ContainsFunc(problems, func(p *convert.Problem) bool { return strings.Contains(p.Message, field+" cannot be converted") }) {
				t.Errorf("%s: it is not refused", rule)
			}
		}
	}
	for _, row := range []struct{ reason, rules, labels string }{
		{"without rules about metadata", "", `{"l":"v"}`},
		{"a label is removed", `    toHub: [{remove: [".metadata.labels.l"]}]`, `{}`},
		{"a label is set", `    toHub: [{set: ".metadata.labels['example.com/a']", expression: self.spec.a}]`, `{"l":"v","example.com/a":"v"}`},
	} {
		c, problems := compile(t, crdOf(fields, fields), conversionOf(row.rules))
		if len(problems) > 0 {
			t.Fatal(problems[0])
		}
		h := &webhook.Handler{Converters: func(schema.GroupKind) *convert.Converter { return c }}
		recorder := httptest.NewRecorder()
		body := reviewOf("example.com/v1", `{"apiVersion":"example.com/v1beta1","kind":"Thing","spec":{"a":"v"},"metadata":`+wholeMetadata+`}`)
		h.ServeHTTP(recorder, httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body)))
		var answer struct {
			Response struct {
				ConvertedObjects []struct{ Metadata json.RawMessage }
			}
		}
		if err := json.Unmarshal(recorder.Body.Bytes(), &answer); err != nil || len(answer.Response.ConvertedObjects) != 1 {
			t.Fatalf("%s: answered %s: %v", row.reason, recorder.Body, err)
		}
		want := object(t, []byte(strings.Replace(wholeMetadata, `{"l":"v"}`, row.labels, 1)))
		if got := object(t, answer.Response.ConvertedObjects[0].Metadata); !cmp.Equal(got, want) {
			t.Errorf("%s: %s", row.reason, cmp.Diff(want, got))
		}
	}
}

// What is shown of an object that cannot be converted has no value of it.
func TestLossShowsNoValues(t *testing.T) {
	t.Parallel()
	for _, expression := range []string{
		"{'a': 'b'}[self.spec.a]", "string(timestamp(self.spec.a))", "url(self.spec.a).getHost()", "string(cidr(self.spec.a).prefixLength())",
		"string(int(self.spec.a))", "string(quantity(self.spec.a).asInteger())",
	} {
		c, problems := compile(t, crdOf(`{a: {type: string}}`, `{a: {type: string}}`), conversionOf(fmt.Sprintf(
			"    toHub: [{set: .spec.a, expression: %q}]\n    fromHub: [{set: .spec.a, expression: self.spec.a}]\n", expression)))
		if len(problems) > 0 {
			t.Fatalf("%s: %v", expression, problems[0])
		}
		loss, _ := prove.Survives(t.Context(), c, map[string]any{"apiVersion": "example.com/v1beta1", "kind": "Thing",
			"metadata": map[string]any{"name": "x"}, "spec": map[string]any{"a": "SEKRET VALUE"}})
		if loss == nil || strings.Contains(loss.Shown, "SEKRET") || !strings.Contains(loss.Shown, "set .spec.a: evaluating ") {
			t.Errorf("%s: %+v", expression, loss)
		}
	}
}

// The annotation of preserve is nothing that a rule may name.
func TestRulesNamePreserve(t *testing.T) {
	t.Parallel()
	const at = ".metadata.annotations['example.com/kept']"
	for _, rules := range []string{
		`rules: [{move: .spec.a, to: "` + at + `"}]`, `toHub: [{set: "` + at + `", expression: "''"}]`, `fromHub: [{remove: ["` + at + `"]}]`,
	} {
		_, problems := compile(t, crdOf(`{a: {type: string}}`, `{a: {type: string}}`),
			[]byte("hub: v1\nspokes: [{version: v1beta1, "+rules+"}]\npreserve: {annotation: example.com/kept}"))
		if !slices.ContainsFunc(problems, func(p *convert.Problem) bool {
			return strings.Contains(fmt.Sprint(*p), "is the annotation of preserve")
		}) {
			t.Errorf("%s: %v", rules, problems)
		}
	}
}
