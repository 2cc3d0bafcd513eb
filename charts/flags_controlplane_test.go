//go:build controlplane

package charts

import (
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
)

// TestFlagsExist gives the command what the container is given: it must get as far as the API server, which is not
// there. It is a process of its own, since it sets the logger of client-go, which the tests beside this one use.
func TestFlagsExist(t *testing.T) {
	t.Parallel()
	binary := build(t)
	for _, values := range []string{"minimal", "full"} {
		manifest := render(t, "--values=testdata/values/"+values+".yaml")
		dir := unpack(t, mounted(t, manifest))
		container := as[appsv1.Deployment](t, manifest, "Deployment").Spec.Template.Spec.Containers[0]
		args := []string{"--kubeconfig=" + filepath.Join(dir, "none")}
		for _, arg := range container.Args {
			args = append(args, strings.ReplaceAll(arg, container.VolumeMounts[0].MountPath, dir))
		}
		command := exec.CommandContext(t.Context(), binary, args...)
		command.Env = []string{} // not the test's
		for _, e := range container.Env {
			command.Env = append(command.Env, e.Name+"="+e.Value)
		}
		out, err := command.CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 1 || !strings.Contains(string(out), "reading the kubeconfig: ") {
			t.Errorf("%s: corollary %v: %v:\n%s", values, args, err, out)
		}
	}
}
