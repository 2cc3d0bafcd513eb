package cli_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// What is stored in several versions is read in the one that is stored now, and the output says so.
func TestProveLiveOfSeveralVersions(t *testing.T) {
	t.Parallel()
	memory(t)
	c := newCronTabs(t)
	c.apply(t, "a", "example.com:80")
	testkit.Update(t, definitions, "", "crontabs."+c.group, func(u *unstructured.Unstructured) {
		for _, v := range u.Object["spec"].(map[string]any)["versions"].([]any) {
			v := v.(map[string]any)
			v["storage"] = v["name"] == "v1"
		}
	})
	code, out := run(t, "convert", "prove", "-c", c.file("conversion.yaml"), "--live", "--kubeconfig", testkit.Kubeconfig(t))
	if !strings.Contains(out, "objects may be stored as v1beta1, too") {
		t.Errorf("exit code %d\n%s", code, out)
	}
}
