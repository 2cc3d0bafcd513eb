//go:build controlplane

package examples_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/cli"
)

// TestBackup: a CronJob takes backups by a command that the real one understands, and its last success is the message
// of Ready.
func TestBackup(t *testing.T) {
	t.Parallel()
	ns := testkit.Namespace(t)
	runExample(t, "backup")
	state(t, ns, "backup")
	cronJob := await(t, cronJobs, ns, "crontabs", fields{".spec.schedule": "0 2 * * *"})
	await(t, platform("backups"), ns, "crontabs", ready("True", "Ready", "no backup yet"))
	setStatus(t, cronJobs, ns, "crontabs", func(*unstructured.Unstructured) map[string]any {
		return map[string]any{"lastSuccessfulTime": "2026-11-23T02:00:07Z"}
	})
	await(t, platform("backups"), ns, "crontabs", ready("True", "Ready", "last success: 2026-11-23T02:00:07Z"))

	path := filepath.Join(t.TempDir(), "backup")
	args := []string{"--kubeconfig=" + testkit.Kubeconfig(t)}
	for _, arg := range at(cronJob, ".spec.jobTemplate.spec.template.spec.containers[name=corollary].args").([]any) {
		args = append(args, strings.NewReplacer("crontabs.stable.example.com", "backups.platform.example.com", "/backup/$(POD_NAME)", path).
			Replace(arg.(string)))
	}
	var out bytes.Buffer
	if code := cli.Main(args, cli.IO{In: strings.NewReader(""), Out: &out, Err: &out, Env: os.Environ()}); code != 0 {
		t.Errorf("corollary %v exits %d:\n%s", args, code, &out)
	}
	if _, err := os.Stat(path + ".tar.zst"); err != nil {
		t.Error(err)
	}
}
