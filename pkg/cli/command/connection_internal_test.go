package command

import (
	"os"
	"path/filepath"
	"testing"
)

// TestWarningsOfTheAPIServer: commands print each once, as kubectl does.
func TestWarningsOfTheAPIServer(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	const text = "{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: a, user: a}}], " +
		"clusters: [{name: a, cluster: {server: 'https://localhost:1'}}], users: [{name: a, user: {}}]}"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	of := Connection{kubeconfig: path}
	if cfg, err := of.REST(); err != nil || cfg.WarningHandler == nil {
		t.Errorf("a command logs warnings in the format of client-go: %v", err)
	}
}
