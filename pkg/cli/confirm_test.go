package cli_test

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// TestConfirmContinuesARollout: the next process, with another config, is not ready while its change waits, while the
// previous process is still the leader. After a confirmation it is ready and takes over.
func TestConfirmContinuesARollout(t *testing.T) {
	t.Parallel()
	ns, health := memory(t), testkit.FreeAddress(t)
	guarded := []string{"-c", operatorFile, "--set", "widgets:.watch.namespaces=[" + ns + "]",
		"--set", "widgets:.guard={maxChanged: 20%, minimum: 1, confirm: {namespace: " + ns + ", configMap: confirmations, key: widgets}}"}
	changed := slices.Concat(guarded, []string{
		"--set", `widgets:.downstreams[name=config].template="metadata: {name: {{ .metadata.name }}}\ndata: {color: light-{{ .spec.color }}}"`})
	running := slices.Concat(steadyElection, []string{"--leader-elect", "--leader-election-id", "widgets", "-n", ns, "--metrics-bind-address",
		"0"})

	first := start(t, testkit.Config(t), slices.Concat([]string{"run", "--health-probe-bind-address", "0"}, running, guarded)...)
	for i := range 3 {
		testkit.Apply(t, ns, strings.Replace(blueWidget, "one", fmt.Sprintf("w%d", i), 1))
	}
	testkit.Apply(t, ns, blueWidget)
	eventuallyColor(t, ns, "blue")
	testkit.Eventually(t, patience, func() (bool, string) {
		n := len(testkit.List(t, configMaps, ns, "tools.example.com/managed-by=widgets"))
		return n == 4, fmt.Sprintf("there are %d", n)
	})

	second := start(t, testkit.Config(t), slices.Concat([]string{"run", "--health-probe-bind-address", health}, running, changed)...)
	eventuallyAnswers(t, health+"/readyz/operators", http.StatusInternalServerError,
		"GuardWaiting: 4 of 4 existing downstreams would be changed or deleted")
	if code, text := answer(t, "http://"+health+"/readyz"); code != http.StatusInternalServerError {
		t.Errorf("/readyz answers %d: %s", code, text)
	}

	testkit.Apply(t, ns, "{apiVersion: v1, kind: ConfigMap, metadata: {name: confirmations}, data: {other: kept}}")
	_, text := answer(t, "http://"+health+"/readyz/operators")
	digest := regexp.MustCompile("--digest ([0-9a-f]{32})").FindStringSubmatch(text)
	if len(digest) != 2 {
		t.Fatalf("no digest is told: %s", text)
	}
	planned := func(says string) {
		t.Helper()
		args := append([]string{"plan"}, changed...)
		if code, out := run(t, args...); code != 2 || !strings.Contains(out, says) {
			t.Errorf("plan: exit code %d, want 2 and %q\n%s", code, says, out)
		}
	}
	planned("run waits until that is confirmed, with the digest " + digest[1])
	expect(t, 0, "is confirmed under key widgets of ConfigMap "+ns+"/confirmations",
		append([]string{"confirm", "widgets", "--digest", digest[1]}, changed...)...)
	other, _, _ := unstructured.NestedString(testkit.Get(t, configMaps, ns, "confirmations").Object, "data", "other")
	if other != "kept" {
		t.Error("a key of somebody else was changed")
	}
	eventuallyAnswers(t, health+"/readyz", http.StatusOK)
	planned("that is confirmed, with the digest " + digest[1] + ", so run does it")
	eventuallyColor(t, ns, "blue") // the first still leads
	first.stop(t)
	eventuallyColor(t, ns, "light-blue")
	second.stop(t)
}
