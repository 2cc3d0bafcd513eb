//go:build controlplane

package cli_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// With migrate: Auto, run rewrites stored objects once the definition stores another version, under the rights that generate rbac derives.
// Without a proof it does not.
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
