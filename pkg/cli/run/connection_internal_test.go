package run

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/cobra"
)

// TestRunLogsWarnings: run has no handler of its own for the API server's warnings, so they go to the log.
func TestRunLogsWarnings(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	const text = "{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: a, user: a}}], " +
		"clusters: [{name: a, cluster: {server: 'https://localhost:1'}}], users: [{name: a, user: {}}]}"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd, o := &cobra.Command{}, runOptions{}
	o.connection.Bind(cmd, "")
	if err := cmd.ParseFlags([]string{"--kubeconfig", path}); err != nil {
		t.Fatal(err)
	}
	if cfg, err := o.restLogged(); err != nil || cfg.WarningHandler != nil {
		t.Errorf("run does not log warnings: %v", err)
	}
}
