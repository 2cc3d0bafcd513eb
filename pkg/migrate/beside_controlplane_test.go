//go:build controlplane

package migrate_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// An object that a policy keeps from being written is rewritten by way of its status. But its managedFields stay then,
// whatever is sent: where they have to be changed, the object is reported, and the old version stays named.
func TestMigrateByTheStatus(t *testing.T) {
	t.Parallel()
	withStatus := func(text string) string {
		return strings.ReplaceAll(text, "schema: {", "subresources: {status: {}}, schema: {")
	}
	for _, leaving := range [][]string{nil, {"v1beta1"}} {
		k := define(t, "v1beta1!", "v1")
		testkit.Apply(t, "", withStatus(k.crd("v1beta1!", "v1")))
		k.fill(2)
		testkit.Policy(t, k.ns, "Validating", "UPDATE", k.group, "things", `
  validations: [{expression: "false", message: frozen}]`)
		testkit.Eventually(t, patience, func() (bool, string) {
			return k.tryApply("v1beta1", "somebody", "t0", "a", "other") != nil, "the policy is not in force yet"
		})
		testkit.Apply(t, "", withStatus(k.crd("v1beta1", "v1!")))
		testkit.Eventually(t, patience, func() (bool, string) { return len(k.stored()) == 2, fmt.Sprint("stored are ", k.stored()) })
		before := k.get("t0")
		_, r, err := run(t, k.migration(testkit.Dynamic(t), leaving...))
		isRewritten := before.GetResourceVersion() != k.get("t0").GetResourceVersion()
		if isWanted := len(leaving) == 0; err != nil || r.Trimmed != isWanted || isRewritten != isWanted || (r.Refused == 0) != isWanted {
			t.Errorf("leaving %v: rewritten is %t, the result %+v: %v", leaving, isRewritten, r, err)
		}
	}
}
