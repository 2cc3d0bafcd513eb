//go:build controlplane

package charts

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/internal/golden"
	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/internal/testkit"
)

// TestReleaseTemplates renders the hook of helm uninstall.
func TestReleaseTemplates(t *testing.T) {
	golden.Cases(t, "testdata/release/*.txtar", func(t *testing.T, c *golden.Case) {
		manifest := render(t, "--values="+write(t, "values.yaml", c.Section("values.yaml")))
		c.Want(t, "rendered", only([]string{"release-job", "release-networkpolicy", "release-rbac"}, manifest))
	})
}

// TestReleaseIsLeftOut: there is a hook only where there is something to take off, and someone who may.
func TestReleaseIsLeftOut(t *testing.T) {
	const held = "finalizer: tools.example.com/site"
	config := text(t, "testdata/values/finalizer.yaml")
	if !strings.Contains(config, held) {
		t.Fatal("it holds another config")
	}
	for _, tc := range []struct {
		reason    string
		finalizer string // what the config says of it
		args      []string
		job       bool
		role      bool
	}{
		{"a finalizer", held, nil, true, true},
		{"nobody wants it", held, []string{"--set=release.onUninstall=false"}, false, false},
		{"no config names a finalizer", "", nil, false, false},
		{"only one of before", "previous: {finalizer: tools.example.com/old}", nil, true, true},
		{"rights are not to be made", held, []string{"--set=rbac.create=false"}, false, false},
		{"somebody has them", held, []string{"--set=rbac.create=false", "--set=release.serviceAccountName=me"}, true, false},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			t.Parallel()
			values := write(t, "values.yaml", strings.Replace(config, held, tc.finalizer, 1))
			manifest := render(t, append([]string{"--values=" + values}, tc.args...)...)
			must.Same(t, tc.job, strings.Contains(manifest, "kind: Job\n"), "there is a Job")
			must.Same(t, tc.role, strings.Contains(manifest, "name: test-corollary:release-site\n"), "there is a Role")
		})
	}
}

// TestRollbackAfterAnUninstall: an uninstall whose hook did not succeed has taken the processes away; a rollback brings
// them back. No kubelet runs the hook here.
func TestRollbackAfterAnUninstall(t *testing.T) {
	t.Parallel()
	ns := testkit.Namespace(t)
	do := func(args ...string) (string, error) {
		_, stderr, err := helm(t, append(args, "--namespace="+ns, "--kubeconfig="+testkit.Kubeconfig(t))...)
		return stderr, err
	}
	if out, err := do("install", "back", chart, "--values=testdata/values/finalizer.yaml",
		"--set=operators.site.watch.namespaces={"+ns+"}"); err != nil {
		t.Fatal(out)
	}
	if out, err := do("uninstall", "back", "--timeout=1s"); err == nil {
		t.Fatalf("nothing ran the hook, yet it succeeded: %s", out)
	}
	deployments := appsv1.SchemeGroupVersion.WithResource("deployments")
	testkit.Patch(t, deployments, ns, "back-corollary", "corollary", `{"spec": {"replicas": 0}}`, "scale") // as the hook does first
	if out, err := do("rollback", "back", "1"); err != nil {
		t.Fatal(out)
	}
	if replicas, _, _ := unstructured.NestedInt64(testkit.Get(t, deployments, ns, "back-corollary").Object, "spec",
		"replicas"); replicas != 2 {
		t.Errorf("there are to be %d processes", replicas)
	}
}
