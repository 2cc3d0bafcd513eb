//go:build controlplane

package backup_test

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/internal/tools"
)

var objectsOf = flag.Int("objects", 3000, "TestManyObjects: how many objects are in the backup")

// mostGrowth is how much more memory the command may take for ten times as many objects: for each it keeps a uid, and
// Go's heap is up to twice what is in use.
func mostGrowth(objects int) int64 { return 24<<20 + int64(objects)*300 }

// create makes custom resources of 1 KB, in parallel.
func (w *world) create(objects int) {
	w.t.Helper()
	config := testkit.Config(w.t)
	config.QPS = -1
	client := must.Get(dynamic.NewForConfig(config)).In(w.t)
	var next atomic.Int64
	var group sync.WaitGroup
	for range 16 {
		group.Go(func() {
			for n := next.Add(1); n <= int64(objects) && w.t.Context().Err() == nil; n = next.Add(1) {
				u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": w.group + "/v1", "kind": "Thing",
					"metadata": map[string]any{"name": fmt.Sprintf("t%06d", n)}, "spec": map[string]any{"text": strings.Repeat("x", 1000)}}}
				if _, err := client.Resource(w.things()).Namespace(w.ns).Create(w.t.Context(), u, metav1.CreateOptions{}); err != nil {
					w.t.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
}

// measure runs a command, and returns how long it took and the most memory that it had.
func measure(t *testing.T, name string, args ...string) (time.Duration, int64) {
	t.Helper()
	command := exec.CommandContext(t.Context(), name, args...)
	command.Stdout = io.Discard
	var problems strings.Builder
	command.Stderr = &problems
	begun := time.Now()
	if err := command.Run(); err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, &problems)
	}
	usage := command.ProcessState.SysUsage().(*syscall.Rusage)
	return time.Since(begun), usage.Maxrss << 10
}

// TestManyObjects takes backups of a kind with some objects and of one with ten times as many, beside `kubectl get -o
// yaml`: the memory does not grow with the objects, but for a few bytes for each.
func TestManyObjects(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "corollary")
	if out, err := exec.CommandContext(
		t.Context(),
		"go",
		"build",
		"-buildvcs=false",
		"-o",
		binary,
		"../../cmd/corollary",
	).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	kubeconfig := "--kubeconfig=" + testkit.Kubeconfig(t)
	var memory []int64
	for _, objects := range []int{*objectsOf / 10, *objectsOf} {
		w := worldOn(t)
		w.create(objects)
		path := filepath.Join(t.TempDir(), "backup.tar.zst")
		took, most := measure(t, binary, "backup", "--crd", w.name(), "-o", path, kubeconfig)
		dry, dryMost := measure(t, binary, "restore", path, "--dry-run", kubeconfig)
		other, otherMost := measure(t, tools.Path(t, "kubectl"), "get", w.name(), "-A", "-o", "yaml", kubeconfig)
		t.Logf("%d objects: backup %v, %d MB; restore --dry-run %v, %d MB; kubectl get -o yaml %v, %d MB", objects,
			took.Round(10*time.Millisecond), most>>20, dry.Round(10*time.Millisecond), dryMost>>20, other.Round(10*time.Millisecond), otherMost>>20)
		memory = append(memory, most, dryMost)
		err := testkit.Dynamic(
			t,
		).Resource(
			w.things(),
		).Namespace(
			w.ns,
		).DeleteCollection(
			context.WithoutCancel(t.Context()),
			metav1.DeleteOptions{},
			metav1.ListOptions{},
		)
		if err != nil {
			t.Error(err)
		}
	}
	for i, what := range []string{"a backup", "the plan of a restore"} {
		if grown := memory[2+i] - memory[i]; grown > mostGrowth(*objectsOf) {
			t.Errorf("%s of %d objects took %d MB more than of a tenth", what, *objectsOf, grown>>20)
		}
	}
}
