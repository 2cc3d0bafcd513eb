//go:build controlplane

package cli_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// With migrate: Auto, run rewrites stored objects once the definition stores another version, under the rights that
// generate rbac derives. Without a proof it does not.
func TestRunMigrates(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		reason, migrate string
		proven          bool
		says, event     string
		stored          []string
	}{
		{reason: "it is asked for, and proven", migrate: "Auto", proven: true, says: "stored objects were migrated", event: "Migrated",
			stored: []string{"v1"}},
		{
			reason: "it is not asked for", migrate: "Manual", proven: true,
			says: "every conversion is published", stored: []string{"v1beta1", "v1"},
		},
		{reason: "it is not proven", migrate: "Auto", says: "the conversion is not proven", stored: []string{"v1beta1", "v1"}},
	} {
		t.Run(row.reason, func(t *testing.T) {
			t.Parallel()
			c := newCronTabs(t)
			text := strings.ReplaceAll(cronTabConversion, "GROUP", c.group) + "migrate: " + row.migrate + "\n"
			write(t, c.file("conversion.yaml"), text)
			address := testkit.FreeAddress(t)
			served := c.serve(t, address, address)
			c.eventuallyPublished(t, address)
			for i := range 3 {
				c.apply(t, fmt.Sprint("t", i), "example.com:80")
			}
			if !row.proven { // what was proven once is served on, so a new process has to find out
				served.stop(t)
				ok(t, os.Remove(c.file("certificate.yaml")))
			}
			testkit.Update(t, definitions, "", "crontabs."+c.group, func(u *unstructured.Unstructured) {
				for _, v := range u.Object["spec"].(map[string]any)["versions"].([]any) {
					v := v.(map[string]any)
					v["storage"] = v["name"] == "v1"
					v["deprecated"] = true // as it is on the way back to an old version
				}
			})
			if !row.proven {
				served = c.serve(t, address, address)
			}
			eventuallySays(t, served, row.says)
			testkit.Eventually(t, patience, func() (bool, string) {
				stored := c.stored(t)
				return slices.Equal(stored, row.stored), fmt.Sprintf("status.storedVersions is %v", stored)
			})
			if text := served.text(t); strings.Contains(text, "deprecated") {
				t.Errorf("it logs warnings of the API server for each object:\n%s", text)
			}
			if row.event == "" {
				return
			}
			testkit.Eventually(t, patience, func() (bool, string) {
				list := testkit.List(t, schema.GroupVersionResource{Group: "events.k8s.io", Version: "v1", Resource: "events"}, "default", "")
				return slices.ContainsFunc(list, func(e unstructured.Unstructured) bool {
					name, _, _ := unstructured.NestedString(e.Object, "regarding", "name")
					return name == "crontabs."+c.group && e.Object["reason"] == row.event
				}), "there is no event"
			})
		})
	}
}

// TestMigrateConvertsManagers: who applied in an old version owns the same fields after a migration, by the names of
// the new version: others are in conflict, and what the manager does not apply any more is removed. The API server does
// the same as long as it knows the old version.
func TestMigrateConvertsManagers(t *testing.T) {
	t.Parallel()
	const example = "../../examples/conversions/crontab/"
	var texts []string
	for _, name := range []string{"crd.yaml", "conversion.yaml"} {
		text := read(t, example+name)
		texts = append(texts, strings.ReplaceAll(text, "stable.example.com", "GROUP"))
	}
	c := newCronTabsOf(t, texts[0], texts[1])
	address := testkit.FreeAddress(t)
	c.serve(t, address, address)
	c.eventuallyPublished(t, address)
	apply := func(manager, name, version, spec string, dryRun ...string) (*unstructured.Unstructured, error) {
		u := testkit.Parse(t, fmt.Sprintf("{apiVersion: %s/%s, kind: CronTab, metadata: {name: %s}, spec: %s}", c.group, version, name, spec))
		return testkit.Dynamic(t).Resource(c.resource(version)).Namespace(c.ns).
			Apply(t.Context(), name, u, metav1.ApplyOptions{FieldManager: manager, DryRun: dryRun})
	}
	const inOld, inNew = `{hostPort: "db:5432", schedule: "0 3 * * *"}`, "{host: db, port: 5432}"
	for _, name := range []string{"before", "after"} {
		must(apply("alice", name, "v1beta1", inOld))(t)
		c.eventuallyReads(t, name, "map[cron:0 3 * * * host:db port:5432]")
	}
	prove := func(name string) {
		t.Helper()
		_, err := apply("bob", name, "v1", "{host: other, port: 5432}", metav1.DryRunAll)
		if !apierrors.IsConflict(err) || !strings.Contains(err.Error(), "conflict with \"alice\"") {
			t.Errorf("%s: bob changes what alice owns: %v", name, err)
		}
		if _, err := apply("carol", name, "v1", "{timeZone: UTC}", metav1.DryRunAll); err != nil {
			t.Errorf("%s: carol adds what alice does not own: %v", name, err)
		}
		u, err := apply("alice", name, "v1", inNew)
		if err != nil || fmt.Sprint(u.Object["spec"]) != "map[host:db port:5432]" {
			t.Errorf("%s: alice gives up a field: %v: %v", name, u, err)
		}
	}
	c.store(t, "v1")
	prove("before")
	c.patchDefinition(t, `[{"op": "replace", "path": "/spec/versions/0/served", "value": false}]`)
	testkit.Eventually(t, patience, func() (bool, string) {
		code, out := run(t, "migrate", "crontabs."+c.group, "-c", c.dir, "--kubeconfig", testkit.Kubeconfig(t))
		return code == 0, out
	})
	owned := ""
	for _, entry := range testkit.Get(t, c.resource("v1"), c.ns, "after").GetManagedFields() {
		owned += fmt.Sprint(entry.Manager, " ", entry.APIVersion, " ", entry.FieldsV1.GetRawString(), "\n")
	}
	if want := "alice " + c.group + `/v1 {"f:spec":{"f:cron":{},"f:host":{},"f:port":{}}}` + "\n"; owned != want {
		t.Errorf("managers are %s, want %s", owned, want)
	}
	prove("after")
}
