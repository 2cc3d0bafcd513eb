//go:build controlplane

package cli_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// TestPreservePolicy: an object of the old version that is new, and replaces one that has a field only in the new
// version, is refused, as that field would be lost. Whatever else writes in that version is not hindered, and loses
// nothing.
func TestPreservePolicy(t *testing.T) {
	t.Parallel()
	c := newCronTabsOf(t, strings.Replace(cronTabDefinition, "port: {type", "timeZone: {type: string}, port: {type", 1),
		cronTabConversion+"preserve: {annotation: GROUP/data}\n")
	address := testkit.FreeAddress(t)
	c.serve(t, address, address)
	c.eventuallyPublished(t, address)
	crd := filepath.Join(t.TempDir(), "crd.yaml")
	write(t, crd, strings.ReplaceAll(cronTabDefinition, "GROUP", c.group))
	text, errs, code := split(t, "generate", "policy", "-c", c.file("conversion.yaml"), "--crds", crd, "--name-prefix", c.ns+"-")
	if code != 0 {
		t.Fatalf("exit code %d\n%s", code, errs)
	}
	testkit.Apply(t, c.ns, fmt.Sprintf("{apiVersion: %s/v1, kind: CronTab, metadata: {name: a},\n  "+
		"spec: {host: db, port: 5432, timeZone: Europe/Berlin}}", c.group))
	for _, document := range strings.Split(text, "---\n")[1:] {
		testkit.Apply(t, "", document)
	}

	old := testkit.Dynamic(t).Resource(c.resource("v1beta1")).Namespace(c.ns)
	testkit.Eventually(t, patience, func() (bool, string) { // API servers take some seconds to follow a new policy
		now := must(old.Get(t.Context(), "a", metav1.GetOptions{}))(t)
		built := now.DeepCopy()
		built.SetAnnotations(nil)
		_, err := old.Update(t.Context(), built, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
		return err != nil && strings.Contains(err.Error(), "it would lose them"), fmt.Sprint(err)
	})
	now := must(old.Get(t.Context(), "a", metav1.GetOptions{}))(t)
	for _, row := range []struct {
		reason, port string
		write        func(port string) error
	}{
		{"what was read is sent back", "1", func(port string) error {
			now.Object["spec"] = map[string]any{"hostPort": "db:" + port}
			_, err := old.Update(t.Context(), now, metav1.UpdateOptions{})
			return err
		}},
		{"a patch", "2", func(port string) error {
			_, err := old.Patch(t.Context(), "a", types.MergePatchType, []byte(`{"spec": {"hostPort": "db:`+port+`"}}`), metav1.PatchOptions{})
			return err
		}},
		{"an apply", "3", func(port string) error {
			u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": c.group + "/v1beta1", "kind": "CronTab",
				"metadata": map[string]any{"name": "a"}, "spec": map[string]any{"hostPort": "db:" + port}}}
			_, err := old.Apply(t.Context(), "a", u, metav1.ApplyOptions{FieldManager: "somebody", Force: true})
			return err
		}},
		{"a change in the new version", "4", func(string) error {
			_, err := testkit.Dynamic(t).Resource(c.resource("v1")).Namespace(c.ns).Patch(t.Context(), "a", types.MergePatchType,
				[]byte(`{"spec": {"port": 4}}`), metav1.PatchOptions{})
			return err
		}},
	} {
		if err := row.write(row.port); err != nil {
			t.Errorf("%s: %v", row.reason, err)
		}
		c.eventuallyReads(t, "a", "map[host:db port:"+row.port+" timeZone:Europe/Berlin]")
	}
	if err := old.Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
}
