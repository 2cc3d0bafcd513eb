//go:build controlplane

package engine_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// The real binary is killed again and again in the middle of creations, changes, renames, moves between namespaces and
// deletions. When it is left alone at last, nothing is lost, nothing doubled, nothing orphaned.
func TestKilledAtAnyMoment(t *testing.T) {
	ns, other, name := testkit.Namespace(t), testkit.Namespace(t), testkit.Unique(t)
	conf := elsewhere(fill(widgetConfig, ns, name), other, ns)
	conf = replaceOnce(t, conf, "name: {{ .metadata.name }}", "name: {{ .spec.name }}")
	run := program(t, conf)

	random := rand.New(rand.NewPCG(1, 2)) // the same story each time; the moments of the kills differ anyway
	stop := make(chan struct{})
	var churning sync.WaitGroup
	churning.Go(func() { churn(t, random, ns, other, stop) })
	const kills = 12
	for range kills {
		cmd, _ := run()
		moment := time.After(time.Duration(700+rand.N(900)) * time.Millisecond)
		<-moment
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	close(stop)
	churning.Wait()

	cmd, log := run()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		if _ = cmd.Wait(); t.Failed() {
			t.Log(log.String())
		}
	})
	testkit.Eventually(t, 2*patience, func() (bool, string) { return settled(t, ns, other, name) })
}

// program builds the binary and returns what starts it with a config.
func program(t *testing.T, conf string) func() (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	binary, dir := filepath.Join(t.TempDir(), "corollary"), t.TempDir()
	if out, err := exec.Command("go", "build", "-o", binary, "../../cmd/corollary").CombinedOutput(); err != nil {
		t.Fatalf("building: %v\n%s", err, out)
	}
	if err := os.WriteFile(filepath.Join(dir, "operator.yaml"), []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	return func() (*exec.Cmd, *bytes.Buffer) {
		var log bytes.Buffer
		cmd := exec.Command(binary, "run", "--config", dir, "--kubeconfig", testkit.Kubeconfig(t), "--metrics-bind-address", "0", "--health-probe-bind-address", "0", "--zap-log-level", "debug")
		cmd.Stdout, cmd.Stderr = &log, &log
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd, &log
	}
}

func replaceOnce(t *testing.T, text, old, replacement string) string {
	t.Helper()
	out := bytes.Replace([]byte(text), []byte(old), []byte(replacement), 1)
	if string(out) == text {
		t.Fatalf("%q is not in the config", old)
	}
	return string(out)
}

// churn creates, changes, renames, moves and deletes Widgets until it is stopped.
func churn(t *testing.T, random *rand.Rand, ns, other string, stop chan struct{}) {
	where := []string{ns, other}
	for i := 0; ; i++ {
		select {
		case <-stop:
			return
		case <-time.After(10 * time.Millisecond):
		}
		name := fmt.Sprintf("w-%d", random.IntN(25))
		if random.IntN(6) == 0 {
			testkit.Delete(t, widgets, ns, name)
			continue
		}
		spec := fmt.Sprintf(`{name: %s-%d, namespace: %s, data: {key: "%d"}}`, name, random.IntN(2), where[random.IntN(2)], i)
		if _, err := testkit.TryApply(t, ns, widget(name, spec)); err != nil {
			continue // it is being deleted
		}
	}
}

// settled tells whether every Widget has exactly its own ConfigMap, and every ConfigMap its Widget.
func settled(t *testing.T, ns, other, name string) (bool, string) {
	made := map[string]unstructured.Unstructured{}
	for _, namespace := range []string{ns, other} {
		for _, cm := range testkit.List(t, configMaps, namespace, selector(name)) {
			made[namespace+"/"+cm.GetName()] = cm
		}
	}
	list := testkit.List(t, widgets, ns, "")
	if len(list) == 0 {
		return false, "nothing is left to look at"
	}
	for _, w := range list {
		spec, _, _ := unstructured.NestedMap(w.Object, "spec")
		key := fmt.Sprintf("%s/%s", spec["namespace"], spec["name"])
		cm, ok := made[key]
		if !ok {
			return false, fmt.Sprintf("%s has no ConfigMap %s: %v", w.GetName(), key, w.Object)
		}
		want, _, _ := unstructured.NestedString(w.Object, "spec", "data", "key")
		if have, _, _ := unstructured.NestedString(cm.Object, "data", "key"); have != want {
			return false, fmt.Sprintf("%s has %s, not %s: %v; %v", key, have, want, cm.Object["metadata"], w.Object)
		}
		if status, reason, message := condition(&w, "Ready"); status != "True" || w.GetDeletionTimestamp() != nil {
			return false, fmt.Sprintf("%s: Ready is %s, %s: %s", w.GetName(), status, reason, message)
		}
		if ids := downstreamsOf(&w)["config"]; ids["uid"] != string(cm.GetUID()) {
			return false, fmt.Sprintf("%s names %v, not %s", w.GetName(), ids, cm.GetUID())
		}
		delete(made, key)
	}
	for key, cm := range made {
		return false, fmt.Sprintf("nobody wants %s: %v", key, cm.Object["metadata"])
	}
	return true, ""
}
