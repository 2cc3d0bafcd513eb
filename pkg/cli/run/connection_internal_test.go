package run

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/cobra"

	"github.com/corollary-dev/corollary/internal/must"
)

// TestRunLogsWarnings: run has no handler of its own for the API server's warnings, so they go to the log.
func TestRunLogsWarnings(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	const text = "{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: a, user: a}}], " +
		"clusters: [{name: a, cluster: {server: 'https://localhost:1'}}], users: [{name: a, user: {}}]}"
	must.Do(t, os.WriteFile(path, []byte(text), 0o600))
	cmd, o := &cobra.Command{}, runOptions{}
	o.connection.Bind(cmd, "")
	must.Do(t, cmd.ParseFlags([]string{"--kubeconfig", path}))
	if cfg, _, err := o.server(); err != nil || cfg.WarningHandler != nil {
		t.Errorf("run does not log warnings: %v", err)
	}
}
