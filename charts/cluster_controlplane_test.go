//go:build controlplane

package charts

import (
	"bytes"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/internal/tools"
)

// TestRendersWhatAClusterTakes sends everything that is rendered to the API server as a dry run: a field that does not
// exist, a value of the wrong form or a name that is too long is refused.
func TestRendersWhatAClusterTakes(t *testing.T) {
	t.Parallel()
	longest := strings.Repeat("long", 13) + "x" // what Helm allows a release's name to be
	for _, tc := range []struct {
		reason  string
		release string
		args    []string
		says    string // a part of the refusal; "" where all is taken
	}{
		{"with little", "test", []string{"--values=testdata/values/minimal.yaml"}, ""},
		{"with all there is", "test", []string{"--values=testdata/values/full.yaml"}, ""},
		{"the longest name that a release may have", longest, []string{"--values=testdata/values/minimal.yaml"}, ""},
		{"a name with dots, which no Service may have", "my.app.v1", []string{"--values=testdata/values/minimal.yaml"}, ""},
		{"a name that YAML takes for a number", "1e3", []string{"--values=testdata/values/minimal.yaml"}, ""},
		{"the longest name that a label may have, and a hook that adds to it", "test", []string{"--values=testdata/values/minimal.yaml",
			"--set=nameOverride=" + strings.Repeat("name", 15) + "own", "--set=operators.hello.conventions.finalizer=tools.example.com/held"}, ""},
		{"keys without values, as in a file that is half filled in", "test", []string{"--values=testdata/values/minimal.yaml",
			"--values=testdata/values/empty.yaml",
			"--set=operators.hello.conventions.finalizer=tools.example.com/held"}, ""},
		{"a field that no container has", "test", []string{"--values=testdata/values/minimal.yaml", "--set=securityContext.privilege=none"},
			"securityContext.privilege: field not declared in schema"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			t.Parallel()
			ns := testkit.Namespace(t)
			args := append([]string{"template", tc.release, chart, "--namespace=" + ns}, tc.args...)
			manifest, stderr, err := helm(t, append(args, "--set=operators.hello.watch.namespaces={"+ns+"}")...)
			if err != nil {
				t.Fatalf("%v\n%s", err, stderr)
			}
			out, err := dryRun(t, manifest)
			if (err == nil) != (tc.says == "") || !strings.Contains(out, tc.says) {
				t.Errorf("%v: want it to say %q:\n%s", err, tc.says, out)
			}
		})
	}
}

// dryRun has the API server look at a manifest, fields that it does not know included.
func dryRun(t *testing.T, manifest string) (string, error) {
	t.Helper()
	command := exec.CommandContext(t.Context(), tools.Path(t, "kubectl"), "apply", "--server-side", "--dry-run=server",
		"--validate=strict", "--kubeconfig", testkit.Kubeconfig(t), "--cache-dir", t.TempDir(), "-f", "-")
	command.Stdin = strings.NewReader(manifest)
	var out bytes.Buffer
	command.Stdout, command.Stderr = &out, &out
	err := command.Run()
	return out.String(), err
}

// restricted is a namespace that enforces the Pod Security level "restricted". Admission learns of its labels by a
// watch.
func restricted(t *testing.T, client kubernetes.Interface) string {
	t.Helper()
	ns := testkit.Namespace(t)
	enforce := `{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"restricted","pod-security.kubernetes.io/enforce-version":"latest"}}}`
	testkit.Patch(t, namespaces, "", ns, "test", enforce)
	bare := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "bare"},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "a"}}}}
	testkit.Eventually(t, patience, func() (bool, string) {
		_, err := client.CoreV1().Pods(ns).Create(t.Context(), bare, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return apierrors.IsForbidden(err), fmt.Sprintf("a pod that is not restricted is answered by %v", err)
	})
	return ns
}

// TestRestricted: a namespace that enforces the Pod Security level "restricted" takes the chart's pod and those of its
// hooks. It refuses the same pod without any one of what makes it so.
func TestRestricted(t *testing.T) {
	t.Parallel()
	client := must.Get(kubernetes.NewForConfig(testkit.Config(t))).In(t)
	ns := restricted(t, client)
	hook := func(args ...string) corev1.PodTemplateSpec {
		return as[batchv1.Job](t, render(t, append(args, "--values=testdata/values/finalizer.yaml")...), "Job").Spec.Template
	}
	const backup = "--set=release.onUninstall=false,backup.beforeUpgrade.enabled=true,backup.beforeUpgrade."
	process := as[appsv1.Deployment](t, render(t, "--values=testdata/values/minimal.yaml"), "Deployment").Spec.Template
	for _, tc := range []struct {
		reason   string
		template corev1.PodTemplateSpec
		without  func(pod *corev1.PodSpec)
		refused  string // a part of why; "" where the pod is taken
	}{
		{"the chart's pod", process, nil, ""},
		{"the hook's of an uninstall", hook(), nil, ""},
		{"the hook's of an upgrade", hook(backup + "claim=backups"), nil, ""},
		{"the hook's of an upgrade, with a command", hook(backup + "command={store},backup.beforeUpgrade.image=i"), nil, ""},
		{"it may run as root", process, func(pod *corev1.PodSpec) { pod.SecurityContext.RunAsNonRoot = nil }, "runAsNonRoot != true"},
		{"system calls are not filtered", process, func(pod *corev1.PodSpec) { pod.SecurityContext.SeccompProfile = nil }, "seccompProfile"},
		{"it keeps capabilities", process, func(pod *corev1.PodSpec) { pod.Containers[0].SecurityContext.Capabilities = nil },
			"unrestricted capabilities"},
		{"it may gain privileges", process, func(pod *corev1.PodSpec) {
			pod.Containers[0].SecurityContext.AllowPrivilegeEscalation = nil
		}, "allowPrivilegeEscalation != false"},
	} {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "test", Labels: tc.template.Labels, Annotations: tc.template.Annotations},
			Spec:       *tc.template.Spec.DeepCopy(),
		}
		if tc.refused != "" {
			tc.without(&pod.Spec)
		}
		_, err := client.CoreV1().Pods(ns).Create(t.Context(), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll},
			FieldValidation: "Strict"})
		switch {
		case tc.refused == "" && err != nil:
			t.Errorf("%s: %v", tc.reason, err)
		case tc.refused != "" && (err == nil || !strings.Contains(err.Error(), tc.refused)):
			t.Errorf("%s: want a refusal that says %q: %v", tc.reason, tc.refused, err)
		}
	}
}
