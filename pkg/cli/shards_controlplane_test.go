//go:build controlplane

package cli_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// TestRightsOfShards: what generate rbac prints is enough for processes that join, share, die and leave, and they use
// all of the rights to Leases whose names are not known before.
func TestRightsOfShards(t *testing.T) {
	t.Parallel()
	ns := testkit.Namespace(t)
	configs := []string{"-c", operatorFile, "--set", "widgets:.watch.namespaces=[" + ns + "]", "--set", "widgets:.guard.maxChanged=100%"}
	out, errs, code := split(t, append([]string{"generate", "rbac", "-n", ns, "--name", "sharing", "--leader-election-id", "lead", "--shards",
		"4", "--crds", "../../testdata/widgets/crd.yaml"}, configs...)...)
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	granted := map[string]bool{}
	for _, text := range strings.Split(out, "\n---\n")[1:] {
		o := testkit.Apply(t, ns, text)
		rules, _, _ := unstructured.NestedSlice(o.Object, "rules")
		for _, rule := range rules {
			if r := rule.(map[string]any); slices.Contains(r["resources"].([]any), any("leases")) && r["resourceNames"] == nil {
				for _, verb := range r["verbs"].([]any) {
					granted[strings.ToUpper(verb.(string))] = true
				}
			}
		}
	}
	ok(t, testkit.RightsInForce(t.Context()))
	user := "system:serviceaccount:" + ns + ":sharing"
	args := append([]string{"run", "--as", user, "-n", ns, "--leader-elect", "--leader-election-id", "lead", "--metrics-bind-address", "0",
		"--health-probe-bind-address", "0"}, configs...)
	sharing := append(append(slices.Clone(args), "--shards", "4"), timings(leaseLength, renewDeadline, 500*time.Millisecond)...)
	alone := start(t, testkit.Config(t), append(args, steadyElection...)...)
	eventuallySays(t, alone, `"msg":"Successfully acquired lease"`)
	first := start(t, testkit.Config(t), sharing...) // waits, and watches the Lease
	eventuallySays(t, first, "waiting: a process without --shards holds the Lease")
	alone.interrupt(t)
	second := start(t, testkit.Config(t), sharing...)
	testkit.Apply(t, ns, blueWidget)
	eventuallyColor(t, ns, "blue")
	for _, p := range []*process{first, second} {
		eventuallySays(t, p, `"msg":"taking part in the set of shards"`)
	}
	ok(t, second.Process.Kill())
	testkit.Eventually(t, patience, func() (bool, string) { // it is marked as dead, and its Lease deleted
		used := map[string]bool{}
		for _, r := range testkit.Audit(t, testkit.By(user)) {
			if r.Code == 403 {
				t.Fatalf("it was refused: %+v", r)
			}
			if r.Resource == "leases" && r.Name != "lead" {
				used[r.Verb] = true
			}
		}
		return maps.Equal(used, granted), fmt.Sprintf("of the rights to Leases %v, these are used: %v", granted, used)
	})
	first.stop(t)
}
