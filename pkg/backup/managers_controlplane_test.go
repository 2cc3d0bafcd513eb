//go:build controlplane

package backup_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/backup"
	"github.com/corollary-dev/corollary/pkg/config/conversion"
	"github.com/corollary-dev/corollary/pkg/convert"
	"github.com/corollary-dev/corollary/pkg/kinds"
)

const hostDefinition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: hosts.GROUP}
spec:
  group: GROUP
  scope: Namespaced
  names: {plural: hosts, singular: host, kind: Host, listKind: HostList}
  versions:
    - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {
        host: {type: string}, port: {type: integer}, note: {type: string}, zone: {type: string}}}}}}}
`

const hostOld = `
    - {name: v1beta1, served: true, storage: false, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object,
        x-kubernetes-preserve-unknown-fields: true, required: [hostPort], properties: {hostPort: {type: string}, note: {type: string}}}}}}}
`

const hostConversion = `
hub: v1
spokes:
  - version: v1beta1
    toHub:
      - {set: .spec.host, expression: "self.spec.hostPort.split(':')[0]"}
      - {set: .spec.port, expression: "int(self.spec.hostPort.split(':')[1])"}
      - {remove: [.spec.hostPort]}
    fromHub:
      - {set: .spec.hostPort, expression: "self.spec.host + ':' + string(self.spec.port)"}
      - {remove: [.spec.host, .spec.port]}
preserve: {annotation: example.com/kept}
`

// hostConverter compiles the conversion for an archived definition.
func hostConverter(t *testing.T) func(*apiextensionsv1.CustomResourceDefinition) *convert.Converter {
	return func(crd *apiextensionsv1.CustomResourceDefinition) *convert.Converter {
		versions, err := kinds.Versions(crd)
		if err != nil {
			t.Error(err)
		}
		var conf conversion.Conversion
		if err := yaml.UnmarshalStrict([]byte(hostConversion), &conf); err != nil {
			t.Error(err)
		}
		c, problems := convert.Compile(&conf, convert.Options{Kind: schema.GroupKind{Group: crd.Spec.Group, Kind: "Host"}, Versions: versions})
		for _, p := range problems {
			t.Error(p)
		}
		return c
	}
}

// Who had applied an object in a version that the cluster does not have owns the same fields after the restore, by
// their names in the version of the object: others are in conflict, and what is given up is removed. Without a
// conversion no conflict is lost either.
func TestRestoreConvertsManagers(t *testing.T) {
	t.Parallel()
	group, ns := testkit.Unique(t)+".example.com", testkit.Namespace(t)
	w := &world{t: t, group: group, ns: ns}
	definition := strings.ReplaceAll(hostDefinition, "GROUP", group)
	testkit.InstallCRDs(t, definition+hostOld)
	gvr := schema.GroupVersionResource{Group: group, Version: "v1", Resource: "hosts"}
	objects := testkit.Dynamic(t).Resource(gvr).Namespace(ns)
	apply := func(manager, spec string) (*unstructured.Unstructured, error) {
		u := testkit.Parse(t, fmt.Sprintf("{apiVersion: %s/v1, kind: Host, metadata: {name: a}, spec: %s}", group, spec))
		return objects.Apply(t.Context(), "a", u, metav1.ApplyOptions{FieldManager: manager})
	}
	for manager, spec := range map[string]string{"alice": "{host: db, port: 5432, note: x}", "carol": "{zone: z}"} {
		must.Get(apply(manager, spec)).In(t)
	}
	owned := fmt.Sprintf(`[{"op": "replace", "path": "/metadata/managedFields", "value": [
		{"manager": "alice", "operation": "Apply", "apiVersion": %q, "fieldsType": "FieldsV1",
			"fieldsV1": {"f:spec": {"f:hostPort": {}, "f:note": {}}}},
		{"manager": "carol", "operation": "Apply", "apiVersion": %q, "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:zone": {}}}}]}]`,
		group+"/v1beta1", group+"/v1")
	must.Get(objects.Patch(t.Context(), "a", types.JSONPatchType, []byte(owned), metav1.PatchOptions{})).In(t)
	b := w.backup(testkit.Config(t))
	b.Kinds = []backup.Selection{{GVK: gvr.GroupVersion().WithKind("Host"), Resource: "hosts", Namespaced: true, Custom: true,
		Namespaces: []string{ns}, Choices: []backup.Choice{{}}}}
	testkit.Patch(t, definitions, "", "hosts."+group, "test", `{"spec": {"conversion": {"strategy": "Webhook", "webhook": {
		"conversionReviewVersions": ["v1"], "clientConfig": {"url": "https://127.0.0.1:1/convert"}}}}}`)
	path := filepath.Join(t.TempDir(), "backup")
	if _, _, err := b.Run(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	testkit.Delete(t, definitions, "", "hosts."+group)
	testkit.Eventually(t, patience, func() (bool, string) {
		return testkit.Find(t, definitions, "", "hosts."+group) == nil, "the definition is there still"
	})
	testkit.InstallCRDs(t, definition)
	for _, known := range []bool{true, false} {
		r := w.restore(testkit.Config(t), path, backup.Fail)
		if known {
			r.Converter = hostConverter(t)
		}
		_, result, err := run(t.Context(), r)
		if err != nil || result.Finished != 1 || (len(result.Guessed) == 0) != known {
			t.Fatalf("%+v: %v", result, err)
		}
		managers := map[string]string{}
		for _, e := range testkit.Get(t, gvr, ns, "a").GetManagedFields() {
			managers[e.Manager] = e.APIVersion + " " + e.FieldsV1.GetRawString()
		}
		if want := fmt.Sprint(map[string]string{"alice": group + `/v1 {"f:spec":{"f:host":{},"f:note":{},"f:port":{}}}`,
			"carol": group + `/v1 {"f:spec":{"f:zone":{}}}`}); fmt.Sprint(managers) != want {
			t.Errorf("known: %t: managers are %v, want %v", known, managers, want)
		}
		if _, err := apply("bob", "{host: other}"); !apierrors.IsConflict(err) {
			t.Errorf("known: %t: bob changes what alice owns: %v", known, err)
		}
		if u, err := apply("alice", "{host: db, port: 5432}"); err != nil || fmt.Sprint(u.Object["spec"]) != "map[host:db port:5432 zone:z]" {
			t.Errorf("known: %t: alice gives up a field: %v: %v", known, u, err)
		}
		testkit.Delete(t, gvr, ns, "a")
	}
}
