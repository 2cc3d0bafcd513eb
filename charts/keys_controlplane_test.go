//go:build controlplane

package charts

import (
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

// TestCompleteConfig: a config that has every key there is, as the tests of the loader have it, is refused for none of
// them when it is given as a file.
func TestCompleteConfig(t *testing.T) {
	t.Parallel()
	archive, err := txtar.ParseFile("../testdata/complete/complete.txtar")
	if err != nil {
		t.Fatal(err)
	}
	config := ""
	for _, file := range archive.Files {
		if file.Name == "conf/app.yaml" {
			config = strings.Replace(string(file.Data), "../conventions.yaml", "conventions.yaml", 1)
		}
	}
	if !strings.Contains(config, "resyncPeriod:") {
		t.Fatalf("the archive holds another config:\n%s", config)
	}
	stdout, stderr, err := helm(t, "template", "test", chart, "--set=image.repository=registry.example.com/corollary",
		"--set-file=operatorFiles.app="+write(t, "app.yaml", config),
		`--set=files.settings\.yaml\.tmpl=metadata`,
		"--set-file=files.conventions\\.yaml="+write(t, "conventions.yaml",
			"apiVersion: corollary.dev/v1alpha1\nkind: Conventions\nconventions: {}\n"))
	if err != nil || !strings.Contains(stdout, "kind: Deployment") {
		t.Errorf("%v: %s", err, stderr)
	}
}
