//go:build controlplane

package backup_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/backup"
)

// An object that exists and is not as in the backup is replaced, and keeps what the API server and controllers
// generated for it: most of that cannot be changed.
func TestReplaceKeepsWhatIsGenerated(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		reason, yaml, change string
		gvr                  schema.GroupVersionResource
		changed              []string
		generated            [][]string
	}{
		{"addresses and ports", "{apiVersion: v1, kind: Service, metadata: {name: x}, spec: {type: NodePort, ports: [{name: a, port: 80}, " +
			"{name: b, port: 81}]}}",
			`{"spec": {"sessionAffinity": "ClientIP"}}`, schema.GroupVersionResource{Version: "v1", Resource: "services"},
			[]string{"spec", "sessionAffinity"}, [][]string{{"spec", "clusterIP"}, {"spec", "ports"}}},
		{"a port less", "{apiVersion: v1, kind: Service, metadata: {name: x}, spec: {type: NodePort, ports: [{name: a, port: 80}, {name: " +
			"b, port: 81}]}}",
			`{"spec": {"ports": [{"name": "b", "port": 81}]}}`, schema.GroupVersionResource{Version: "v1", Resource: "services"},
			nil, [][]string{{"spec", "clusterIP"}}},
		{"a selector", "{apiVersion: batch/v1, kind: Job, metadata: {name: x}, spec: {template: {spec: {restartPolicy: Never, containers: " +
			"[{name: a, image: i}]}}}}",
			`{"spec": {"parallelism": 3}}`, schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"},
			[]string{"spec", "parallelism"}, [][]string{{"spec", "selector"}, {"spec", "template", "metadata", "labels"}}},
		{"a volume", "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: x}, spec: {accessModes: [ReadWriteOnce], resources: " +
			"{requests: {storage: 1Gi}}}}",
			`{"metadata": {"labels": {"changed": "yes"}}}`, schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"},
			[]string{"metadata", "labels", "changed"}, [][]string{{"spec", "accessModes"}}},
	} {
		ns := testkit.Namespace(t)
		created := testkit.Apply(t, ns, row.yaml)
		before := testkit.Get(t, row.gvr, ns, "x")
		selection := backup.Selection{
			GVK:        created.GroupVersionKind(),
			Resource:   row.gvr.Resource,
			Namespaced: true,
			Namespaces: []string{ns},
			Choices:    []backup.Choice{{}},
		}
		path := filepath.Join(t.TempDir(), "backup")
		if _, _, err := (&backup.Backup{Client: testkit.Dynamic(t), Kinds: []backup.Selection{selection}}).Run(
			t.Context(),
			path,
		); err != nil {
			t.Fatal(err)
		}
		testkit.Patch(t, row.gvr, ns, "x", "somebody", row.change)
		_, result, err := run(t.Context(), (&world{t: t}).restore(testkit.Config(t), path, backup.Replace))
		if err != nil || result.Replaced != 1 || len(result.Refused)+len(result.Changed) > 0 {
			t.Errorf("%s: %+v: %v", row.reason, result, err)
		}
		after := testkit.Get(t, row.gvr, ns, "x")
		for _, field := range append(row.generated, row.changed) {
			was, _, _ := unstructured.NestedFieldCopy(before.Object, field...)
			is, _, _ := unstructured.NestedFieldCopy(after.Object, field...)
			if len(field) > 0 && fmt.Sprint(was) != fmt.Sprint(is) {
				t.Errorf("%s: %v was %v and is %v", row.reason, field, was, is)
			}
		}
		if before.GetUID() != after.GetUID() {
			t.Errorf("%s: it is another object", row.reason)
		}
	}
}
