package cli_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/kinds"
)

// boxes is a config that describes its kind. fields are lines below watch.schema.spec.
const boxes = `apiVersion: corollary.dev/v1alpha1
kind: Operator
metadata: {name: boxes}
watch:
  apiVersion: %[1]s/v1
  kind: Box
  schema:
    plural: boxes
    shortNames: [%[3]s]
    types:
      Item: {name: string | required=true maxLength=20, count: integer | default=1}
    spec:
      color: 'string | required=true enum="blue,green" immutable=true'
      size: integer | default=3 minimum=1 maximum=9
      items: "[]Item | listType=map listMapKey=name maxItems=5"
      labels: map[string]string
%[2]s
validate:
  - rule: self.spec.size != 7
    message: seven is too many
  - rule: "!self.metadata.?labels.hasValue() || self.spec.size < 9"
downstreams:
  - name: config
    apiVersion: v1
    kind: ConfigMap
    template: |
      metadata: {name: "{{ .metadata.name }}"}
      data:
        color: {{ .spec.color }}
        size: {{ .spec.size | quote }}
        items: {{ .spec.items | default list | toJson | quote }}
        labels: {{ .spec.labels | default dict | toJson | quote }}
conventions:
  fieldManager: %[3]s
  labels: {example.com/managed-by: boxes}
  hash: {annotation: example.com/hash}
events: None
status:
  conditions: {ready: Usable}
  downstreams: .status.downstreams
  fields: [{path: .status.size, value: "size(downstreams.config.data)"}]
`

// describedKind is a config in a file, of a kind of the test's own.
type describedKind struct {
	file, group, manager string
	resource             schema.GroupVersionResource
}

func describe(t *testing.T) *describedKind {
	t.Helper()
	unique := testkit.Unique(t)
	d := &describedKind{
		file:    filepath.Join(t.TempDir(), "boxes.yaml"),
		group:   unique + ".example.com",
		manager: unique[max(0, len(unique)-30):],
	}
	d.manager = "m" + strings.Trim(d.manager, "-")
	d.resource = schema.GroupVersionResource{Group: d.group, Version: "v1", Resource: "boxes"}
	d.write(t, "")
	return d
}

func (d *describedKind) name() string { return "boxes." + d.group }

// write writes the config, with more fields.
func (d *describedKind) write(t *testing.T, more string, replace ...string) {
	t.Helper()
	text := strings.NewReplacer(replace...).Replace(fmt.Sprintf(boxes, d.group, more, d.manager))
	write(t, d.file, text)
}

// apply applies a box named one. It asks for no kinds, which testkit's client may remember from before.
func (d *describedKind) apply(t *testing.T, namespace, spec string) error {
	t.Helper()
	u := testkit.Parse(t, fmt.Sprintf("{apiVersion: %s/v1, kind: Box, metadata: {name: one}, spec: %s}", d.group, spec))
	_, err := testkit.Dynamic(t).Resource(d.resource).Namespace(namespace).
		Apply(t.Context(), "one", u, metav1.ApplyOptions{FieldManager: "test"})
	return err
}

func (d *describedKind) create(t *testing.T, namespace, spec string) {
	t.Helper()
	ok(t, d.apply(t, namespace, spec))
}

func (d *describedKind) start(t *testing.T, cfg *rest.Config, args ...string) *process {
	t.Helper()
	return start(t, cfg, append([]string{"run", "-c", d.file, "--metrics-bind-address", "0", "--health-probe-bind-address", "0"}, args...)...)
}

// started waits until the process has begun to work.
func (p *process) started(t *testing.T) {
	t.Helper()
	testkit.Eventually(t, patience, func() (bool, string) {
		select {
		case <-p.ended:
			t.Fatalf("it has ended:\n%s", p.text(t))
		default:
		}
		return strings.Contains(p.text(t), `"msg":"starting"`), "it has not started"
	})
}

// refused waits until the process has ended with an error that has all these texts.
func (p *process) refused(t *testing.T, texts ...string) {
	t.Helper()
	if code := p.wait(t); code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	for _, text := range texts {
		if !strings.Contains(p.text(t), text) {
			t.Errorf("%q is missing", text)
		}
	}
}

// TestInstallCRDsChanges: a definition is only changed by who applied it, and only if no object loses anything.
func TestInstallCRDsChanges(t *testing.T) {
	t.Parallel()
	ns, d := memory(t), describe(t)
	once := func(t *testing.T) {
		t.Helper()
		p := d.start(t, testkit.Config(t), "--install-crds")
		p.started(t)
		p.stop(t)
	}
	field := func(path ...string) any {
		versions, _, _ := unstructured.NestedSlice(testkit.Get(t, kinds.DefinitionResource, "", d.name()).Object, "spec", "versions")
		value, _, _ := unstructured.NestedFieldCopy(
			versions[0].(map[string]any),
			append([]string{"schema", "openAPIV3Schema", "properties", "spec", "properties"}, path...)...)
		return value
	}
	once(t)
	d.write(t, "", "maximum=9", "maximum=8")
	once(t)
	if got := fmt.Sprint(field("size", "maximum")); got != "8" {
		t.Errorf("without objects, the definition is not changed: maximum %s", got)
	}
	d.create(t, ns, "{color: blue, size: 8}")
	d.write(t, "      more: string", "maximum=9", "maximum=8")
	once(t)
	if field("more") == nil {
		t.Error("a compatible change was not applied")
	}
	d.write(t, "      more: string", "maximum=9", "maximum=5")
	d.start(t, testkit.Config(t), "--install-crds").refused(t, "breaking: .spec.size: ", "there are objects of the kind")
	if got := fmt.Sprint(field("size", "maximum")); got != "8" {
		t.Errorf("maximum %s", got)
	}
	d.write(t, "      more: string", "maximum=9", "maximum=8", "fieldManager: "+d.manager, "fieldManager: other")
	once(t) // which differs in nothing
	d.write(t, "      else: string", "maximum=9", "maximum=8", "fieldManager: "+d.manager, "fieldManager: other")
	d.start(t, testkit.Config(t), "--install-crds").
		refused(t, "it was not applied by this operator", ".spec.more", "kubectl apply --server-side")
	if field("more") == nil || field("else") != nil {
		t.Error("a definition of somebody else was changed")
	}
}

// TestCheckLiveCompares: check --live says how the cluster differs, and writes nothing.
func TestCheckLiveCompares(t *testing.T) {
	t.Parallel()
	memory(t)
	d := describe(t)
	check := func(want ...string) {
		t.Helper()
		code, out := run(t, "check", "-c", d.file, "--live")
		if code != 0 {
			t.Errorf("exit code %d\n%s", code, out)
		}
		for _, text := range want {
			if !strings.Contains(out, text) {
				t.Errorf("%q is missing:\n%s", text, out)
			}
		}
	}
	check(
		"watch.schema: the cluster has no CustomResourceDefinition "+d.name(),
		": Box ("+d.group+"/v1): namespaced, status subresource, typed",
		"no errors, 1 warning",
	)
	_, out := run(t, "generate", "crd", "-c", d.file)
	testkit.InstallCRDs(t, out[strings.Index(out, "apiVersion"):strings.Index(out, "note: ")])
	check("no errors, 0 warnings")
	before := testkit.Get(t, kinds.DefinitionResource, "", d.name()).GetResourceVersion()
	d.write(t, "", "maximum=9", "maximum=8", "[]Item", "[]string", " listType=map listMapKey=name", "")
	check(
		"the CustomResourceDefinition "+d.name()+" in the cluster differs",
		"breaking: .spec.size: maximum was 9 and is 8",
		".spec.items",
		"no errors, 1 warning",
	)
	d.write(t, "", "shortNames: ["+d.manager+"]", "shortNames: ["+d.manager+", another]")
	check("compatible: spec.names", "no errors, 1 warning")
	if err := d.apply(t, "default", "{color: red}"); !apierrors.IsInvalid(err) {
		t.Errorf("the definition is not what was generated: %v", err)
	}
	if after := testkit.Get(t, kinds.DefinitionResource, "", d.name()).GetResourceVersion(); after != before {
		t.Error("check changed the definition")
	}
}
