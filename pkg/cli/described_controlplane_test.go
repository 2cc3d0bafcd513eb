//go:build controlplane

package cli_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/kinds"
)

// TestInstallCRDs: the definition of a described kind is applied, the API server enforces what the config says, and the
// operator works without rights to definitions once it is there.
func TestInstallCRDs(t *testing.T) {
	t.Parallel()
	ns, d := testkit.Namespace(t), describe(t)
	p := d.start(t, testkit.Config(t), "--install-crds")
	p.started(t)
	d.create(t, ns, "{color: blue, items: [{name: a}]}")
	testkit.Eventually(t, patience, func() (bool, string) {
		u := testkit.Get(t, d.resource, ns, "one")
		conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
		size, _, _ := unstructured.NestedInt64(u.Object, "status", "size")
		return size == 4 && len(conditions) == 1 && conditions[0].(map[string]any)["status"] == "True", fmt.Sprint(u.Object["status"])
	})
	data, _, _ := unstructured.NestedStringMap(testkit.Get(t, configMaps, ns, "one").Object, "data")
	if data["size"] != "3" || data["items"] != `[{"count":1,"name":"a"}]` {
		t.Errorf("the defaults are missing: %v", data)
	}
	for _, test := range []struct{ spec, want, reason string }{
		{"{color: red}", `supported values: "blue", "green"`, "enum"},
		{"{}", "spec.color: Required", "required"},
		{"{color: blue, size: 0}", "greater than or equal to 1", "minimum"},
		{"{color: blue, size: 7}", "seven is too many", "a rule of the config"},
		{"{color: blue, items: [{name: a}, {name: a}]}", "duplicate", "keys of a list"},
		{"{color: blue, labels: {a: 1}}", "expected string", "values of a map"},
		{"{color: blue, shade: blue}", "not declared in schema", "unknown fields"},
		{"{color: green}", "the field is immutable", "immutable"},
	} {
		err := d.apply(t, ns, test.spec)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %s", test.reason, err, test.want)
		}
	}
	p.interrupt(t)
	if code := p.wait(t); code != 0 || !strings.Contains(p.text(t), "reads metadata") {
		t.Errorf("exit code %d, and the log should say which rule the definition lacks:\n%s", code, p.text(t))
	}

	before := testkit.Get(t, kinds.DefinitionResource, "", d.name())
	p = d.start(t, testkit.Config(t), "--install-crds")
	p.started(t)
	p.stop(t)
	if after := testkit.Get(t, kinds.DefinitionResource, "", d.name()); after.GetResourceVersion() != before.GetResourceVersion() {
		t.Error("the same definition was written again")
	}
	columns, _, _ := unstructured.NestedFieldNoCopy(before.Object, "spec", "versions")
	if text := fmt.Sprint(columns); !strings.Contains(text, `@.type=="Usable"`) {
		t.Errorf("no column for the condition: %s", text)
	}
	code, out := run(t, "generate", "rbac", "-c", d.file, "-n", "platform")
	if code != 0 || strings.Contains(out, "customresourcedefinitions") {
		t.Errorf("exit code %d, and rights to definitions:\n%s", code, out)
	}
}
