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

// One stored object that cannot be converted fails every list of the kind in another version. Each command names the
// object, writes nothing, and works once that object was fixed in the version that it is stored in.
func TestUnconvertibleObject(t *testing.T) {
	t.Parallel()
	c := newCronTabs(t)
	pattern := func(text string) {
		patch := `[{"op": "replace", "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/hostPort/pattern", "value": "` +
			text + `"}]`
		c.patchDefinition(t, patch)
	}
	for _, name := range []string{"a", "z"} {
		c.apply(t, name, "example.com:80")
	}
	pattern(".*")
	testkit.Eventually(t, patience, func() (bool, string) {
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": c.group + "/v1beta1", "kind": "CronTab",
			"metadata": map[string]any{"name": "odd"}, "spec": map[string]any{"hostPort": "noport"}}}
		_, err := testkit.Dynamic(t).Resource(c.resource("v1beta1")).Namespace(c.ns).Create(t.Context(), u, metav1.CreateOptions{})
		return err == nil, "the definition has not changed yet"
	})
	pattern("^[a-z0-9.-]+:[1-9][0-9]{0,4}$")
	address := testkit.FreeAddress(t)
	c.serve(t, address, address)
	c.eventuallyPublished(t, address)
	c.eventuallyReads(t, "a", "map[host:example.com port:80]")
	c.store(t, "v1")
	commands := [][]string{
		{"migrate", "crontabs." + c.group, "-c", c.dir},
		{"backup", "--crd", "crontabs." + c.group, "-o", filepath.Join(t.TempDir(), "backup")},
		{"convert", "prove", "-c", c.file("conversion.yaml"), "--live"},
	}
	for _, command := range commands {
		code, out := run(t, append(command, "--kubeconfig", testkit.Kubeconfig(t))...)
		named := strings.Contains(out, "CronTab "+c.ns+"/odd: converting from v1beta1 to v1: ")
		if code != 1 || !named {
			t.Errorf("%v: exit code %d\n%s", command, code, out)
		}
	}
	fix := func() error {
		_, err := testkit.Dynamic(t).Resource(c.resource("v1beta1")).Namespace(c.ns).Patch(t.Context(), "odd", types.MergePatchType,
			[]byte(`{"spec": {"hostPort": "example.com:81"}}`), metav1.PatchOptions{})
		return err
	}
	if err := fix(); err == nil {
		t.Error("the object was fixed while v1 is stored: docs/upgrading-crds.md says that it cannot")
	}
	c.store(t, "v1beta1")
	testkit.Eventually(t, patience, func() (bool, string) { err := fix(); return err == nil, fmt.Sprint(err) })
	c.store(t, "v1")
	for _, command := range commands {
		testkit.Eventually(t, patience, func() (bool, string) { // the API server follows a changed definition after a moment
			code, out := run(t, append(command, "--kubeconfig", testkit.Kubeconfig(t))...)
			return code == 0, fmt.Sprintf("%v: exit code %d\n%s", command, code, out)
		})
	}
}

func (c *cronTabs) patchDefinition(t *testing.T, patch string) {
	t.Helper()
	crds := testkit.Dynamic(t).Resource(definitions)
	must(crds.Patch(t.Context(), "crontabs."+c.group, types.JSONPatchType, []byte(patch), metav1.PatchOptions{}))(t)
}
