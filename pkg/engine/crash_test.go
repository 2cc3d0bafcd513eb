//go:build controlplane

package engine_test

import (
	"context"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// The real binary is killed again and again in the middle of creations, changes, renames, moves between namespaces and deletions. When it is left
// alone at last, nothing is lost, nothing doubled, nothing orphaned.
func TestKilledAtAnyMoment(t *testing.T) {
	t.Parallel()
	binary := filepath.Join(t.TempDir(), "corollary")
	if out, err := exec.Command("go", "build", "-buildvcs=false", "-o", binary, "../../cmd/corollary").CombinedOutput(); err != nil {
		t.Fatalf("building: %v\n%s", err, out)
	}
	ns, other, name := testkit.Namespace(t), testkit.Namespace(t), testkit.Unique(t)
	conf := replaceOnce(t, elsewhere(fill(widgetConfig, ns, name), other, ns), "name: {{ .metadata.name }}", "name: {{ .spec.name }}")
	conf += "guard: {maxDeleted: 100%}\n" // what is edited while it is dead counts at a start
	unheld := followUnheld(t, ns)
	end := churn(t, rand.New(rand.NewPCG(1, 2)), ns, other) // the same story each time; the moments of the kills differ anyway
	dir := writeConfigs(t, conf)
	for range 12 {
		log, kill := runProgram(t, binary, dir)
		testkit.Eventually(t, patience, func() (bool, string) {
			return strings.Contains(log.String(), "acting"), "it does nothing:\n" + log.String()
		})
		<-time.After(rand.N(800 * time.Millisecond))
		kill()
	}
	end()
	runProgram(t, binary, dir)
	testkit.Eventually(t, 2*patience, func() (bool, string) { return allInPlace(t, ns, other, name, unheld) })
}

// followUnheld watches the Widgets of a namespace until the test ends, and reports whether the API server deleted one without waiting for its
// finalizer: it looks for finalizers once, and then asks the storage for the uid alone. Nobody can hold such an object.
func followUnheld(t *testing.T, ns string) func(uid string) bool {
	t.Helper()
	var deleted sync.Map
	client := testkit.Dynamic(t).Resource(widgets).Namespace(ns)
	list, err := client.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// The API server ends a watch that does not keep up, as on a busy machine; it is taken up again where it ended.
	watcher := &cache.ListWatch{WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
		return client.Watch(ctx, o)
	}}
	events, err := watchtools.NewRetryWatcherWithContext(t.Context(), list.GetResourceVersion(), watcher)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for e := range events.ResultChan() {
			if u, ok := e.Object.(*unstructured.Unstructured); ok && e.Type == watch.Deleted && u.GetDeletionTimestamp() == nil && len(u.GetFinalizers()) > 0 {
				deleted.Store(string(u.GetUID()), true)
			}
		}
	}()
	return func(uid string) bool { _, ok := deleted.Load(uid); return ok }
}

// runProgram starts the binary with the configs in dir. It runs until the test ends or kill is called; a failed test shows what it logged.
func runProgram(t *testing.T, binary, dir string) (log *logText, kill func()) {
	t.Helper()
	log = &logText{}
	cmd := exec.Command(binary, "run", "--config", dir, "--kubeconfig", testkit.Kubeconfig(t), "--metrics-bind-address", "0",
		"--health-probe-bind-address", "0", "--zap-log-level", "debug")
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill = sync.OnceFunc(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	t.Cleanup(func() {
		if kill(); t.Failed() {
			t.Log(log.String())
		}
	})
	return log, kill
}
