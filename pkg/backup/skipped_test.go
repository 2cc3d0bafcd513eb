package backup_test

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/pkg/backup"
)

// A restored status records an object that stays as it is only if that names its owner: an operator takes what is
// recorded for its own, and deletes it with the upstream.
func TestRestoreRecordsNothingOfOthers(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		reason, onConflict, annotations, more string // of the object that exists by now
		kept                                  bool   // it is the object of the backup, changed
		recorded                              bool
	}{
		{reason: "somebody made one", onConflict: backup.Skip},
		{reason: "it lost its owner", onConflict: backup.Skip, kept: true},
		{reason: "its owner was deleted", onConflict: backup.Skip, annotations: ", example.com/owner: default/a/UID-a", recorded: true},
		{reason: "another owner has it", onConflict: backup.Skip, annotations: ", example.com/owner: default/b/UID-b"},
		{reason: "a reference to another owner", onConflict: backup.Skip, kept: true,
			more: ", ownerReferences: [{apiVersion: example.com/v1, kind: Shop, name: c, uid: UID-c}]"},
		{reason: "it is replaced", onConflict: backup.Replace, recorded: true},
	} {
		t.Run(row.reason, func(t *testing.T) {
			t.Parallel()
			o := newOperatedOf(t, operatorWith(""), strings.Replace(shopDefinition, "phase: {type: string}",
				"phase: {type: string}, downstreams: {type: array, items: {type: object, x-kubernetes-preserve-unknown-fields: true}}", 1))
			uids := strings.NewReplacer("UID-a", o.shop("default", "a"), "UID-b", o.shop("default", "b"), "UID-c", o.shop("shared", "c"))
			o.secret(o.operator, "b2xk", uids.Replace(", example.com/owner: default/a/UID-a"), "")
			o.record(string(o.get(secrets, "shared", "x").GetUID()))
			path := o.save()
			o.remove(shops, "default", "a")
			if !row.kept {
				o.remove(secrets, "shared", "x")
			}
			o.secret(o.operator, "bmV3", uids.Replace(row.annotations), uids.Replace(row.more))
			_, result := o.run(o.restore(path, row.onConflict, o.operator))
			if len(result.Refused) > 0 {
				t.Error(result.Refused)
			}
			records, _, _ := unstructured.NestedSlice(o.get(shops, "default", "a").Object, "status", "downstreams")
			want := ""
			if row.recorded {
				want = string(o.get(secrets, "shared", "x").GetUID())
			}
			var have []string
			for _, record := range records {
				have = append(have, fmt.Sprint(record.(map[string]any)["uid"]))
			}
			if strings.Join(have, ",") != want {
				t.Errorf("recorded is %v, want %q", have, want)
			}
		})
	}
}

// record writes the status of shop a, as an operator whose definition has no field for the name of the object.
func (o *operated) record(uid string) {
	o.t.Helper()
	must.Get(o.client.Resource(shops).Namespace("default").Patch(o.t.Context(), "a", "application/merge-patch+json",
		fmt.Appendf(nil, `{"status": {"downstreams": [{"name": "login", "uid": %q}]}}`, uid), metav1.PatchOptions{}, "status")).In(o.t)
}
