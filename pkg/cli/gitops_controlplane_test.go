//go:build controlplane

package cli_test

import (
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/internal/tools"
)

// gitOps is a definition that other tools keep, from a manifest without spec.conversion.
type gitOps struct {
	*cronTabs
	t          *testing.T
	kubeconfig string
	manifest   string
}

func newGitOps(t *testing.T) *gitOps {
	t.Helper()
	c := newCronTabs(t)
	g := &gitOps{cronTabs: c, t: t, kubeconfig: testkit.Kubeconfig(t), manifest: filepath.Join(t.TempDir(), "crd.yaml")}
	g.write("")
	return g
}

// write writes the manifest, with a description that makes a difference.
func (g *gitOps) write(description string) {
	g.t.Helper()
	text := strings.ReplaceAll(cronTabDefinition, "GROUP", g.group)
	text = strings.Replace(text, "openAPIV3Schema: {", "openAPIV3Schema: {description: \""+description+"\", ", 1)
	write(g.t, g.manifest, text)
}

func (g *gitOps) tool(name string, args ...string) error {
	g.t.Helper()
	cmd := exec.Command(tools.Path(g.t, name), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+g.kubeconfig, "HELM_CACHE_HOME="+g.t.TempDir(), "HELM_CONFIG_HOME="+g.t.TempDir(),
		"HELM_DATA_HOME="+g.t.TempDir())
	out, err := cmd.CombinedOutput()
	g.t.Logf("%s %s\n%s", name, strings.Join(args, " "), out)
	if err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, out)
	}
	return nil
}

func (g *gitOps) chart() string {
	g.t.Helper()
	dir := g.t.TempDir()
	for name, content := range map[string]string{
		"Chart.yaml": "apiVersion: v2\nname: crontabs\nversion: 1.0.0\n", "templates/crd.yaml": read(g.t, g.manifest),
	} {
		write(g.t, filepath.Join(dir, name), content)
	}
	return dir
}

// Whoever applies the definition without spec.conversion leaves alone what run has published, and once run has ended,
// anybody can remove it: nothing of it stays behind that would block that.
func TestGitOps(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name  string
		apply func(g *gitOps) error
		// diff fails if there are differences. Argo CD compares in these two ways: by what was applied last, and by a dry run
		// of the API server.
		diff func(g *gitOps) error
	}{
		{"kubectl apply", func(g *gitOps) error { return g.tool("kubectl", "apply", "-f", g.manifest) },
			func(g *gitOps) error { return g.tool("kubectl", "diff", "-f", g.manifest) }},
		{"kubectl apply --server-side", func(g *gitOps) error {
			return g.tool("kubectl", "apply", "--server-side", "--force-conflicts", "-f", g.manifest)
		}, func(g *gitOps) error {
			return g.tool("kubectl", "diff", "--server-side", "--force-conflicts", "-f", g.manifest)
		}},
		{"helm upgrade", func(g *gitOps) error {
			return g.tool("helm", "upgrade", "--install", "crontabs", g.chart(), "-n", g.ns, "--take-ownership", "--force-conflicts")
		}, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			g := newGitOps(t)
			ok(t, row.apply(g))
			address := testkit.FreeAddress(t)
			served := g.serve(t, address, address)
			g.eventuallyPublished(t, address)
			generation := testkit.Get(t, definitions, "", "crontabs."+g.group).GetGeneration()
			if row.diff != nil && row.diff(g) != nil {
				t.Error("the manifest and the definition differ")
			}
			ok(t, row.apply(g))
			if now := testkit.Get(t, definitions, "", "crontabs."+g.group).GetGeneration(); now != generation {
				t.Errorf("the same manifest changes the definition: generation %d, then %d", generation, now)
			}
			if g.write("changed"); row.diff != nil && row.diff(g) == nil {
				t.Error("a change makes no difference")
			}
			ok(t, row.apply(g))
			if strategy, url := g.strategy(t); strategy != "Webhook" || url != "https://"+address+"/convert" {
				t.Errorf("the manifest took spec.conversion away: %s %s", strategy, url)
			}
			served.stop(t)

			ok(t, g.unpublish())
			g.write("changed again")
			ok(t, row.apply(g))
			if strategy, _ := g.strategy(t); strategy != "None" {
				t.Errorf("it is %s again", strategy)
			}
		})
	}
}

// A manifest with strategy None cannot take the webhook out by a server-side apply, while it would be needed or
// later: the API server refuses what that leaves behind. A patch of the whole stanza can.
func TestGitOpsTakesOver(t *testing.T) {
	t.Parallel()
	g := newGitOps(t)
	address := testkit.FreeAddress(t)
	served := g.serve(t, address, address)
	g.eventuallyPublished(t, address)
	write(t, g.manifest, read(t, g.manifest)+"  conversion: {strategy: None}\n")
	apply := func() error {
		return g.tool("kubectl", "apply", "--server-side", "--force-conflicts", "-f", g.manifest)
	}
	const refusal = "should not be set when strategy is not set to Webhook"
	if err := apply(); err == nil || !strings.Contains(err.Error(), refusal) {
		t.Errorf("while it runs: %v", err)
	}
	served.stop(t)
	if err := apply(); err == nil || !strings.Contains(err.Error(), refusal) {
		t.Errorf("after it has ended: %v", err)
	}
	ok(t, g.unpublish())
	ok(t, apply())
	if strategy, _ := g.strategy(t); strategy != "None" {
		t.Errorf("it is %s", strategy)
	}
}

// unpublish replaces spec.conversion, as the page says.
func (g *gitOps) unpublish() error {
	g.t.Helper()
	patch := `[{"op": "replace", "path": "/spec/conversion", "value": {"strategy": "None"}}]`
	return g.tool("kubectl", "patch", "crd", "crontabs."+g.group, "--type=json", "-p", patch)
}

// What generate crd-conversion prints is what run applies, whatever tool a repository applies it with.
func TestGenerateConversion(t *testing.T) {
	t.Parallel()
	g := newGitOps(t)
	address := testkit.FreeAddress(t)
	served := g.serve(t, address, address)
	g.eventuallyPublished(t, address)
	served.stop(t)
	applied := g.conversion()

	ca, patch := filepath.Join(t.TempDir(), "ca.crt"), filepath.Join(t.TempDir(), "patch.yaml")
	secret := testkit.Get(t, schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, g.ns, "webhook")
	trust, _, _ := unstructured.NestedString(secret.Object, "data", "ca.crt")
	text := must(base64.StdEncoding.DecodeString(trust))(t)
	code, out := run(t, "generate", "crd-conversion", "-c", g.dir, "--crds", g.manifest, "--webhook-url", "https://"+address, "--ca-file", ca)
	if code == 0 {
		t.Errorf("a file that is missing is no error: %s", out)
	}
	write(t, ca, string(text))
	code, out = run(t, "generate", "crd-conversion", "-c", g.dir, "--crds", g.manifest, "--webhook-url", "https://"+address, "--ca-file", ca)
	if code != 0 {
		t.Fatalf("exit code %d\n%s", code, out)
	}
	write(t, patch, out)
	kustomization := "resources: [crd.yaml]\npatches: [{path: patch.yaml}]\n"
	dir := t.TempDir()
	for name, content := range map[string]string{"kustomization.yaml": kustomization, "patch.yaml": out, "crd.yaml": read(t, g.manifest)} {
		write(t, filepath.Join(dir, name), content)
	}
	for _, args := range [][]string{
		{"patch", "crd", "crontabs." + g.group, "--type", "merge", "--patch-file", patch},
		{"apply", "--server-side", "--force-conflicts", "-f", patch},
		{"apply", "-k", dir},
	} {
		ok(t, g.unpublish())
		ok(t, g.tool("kubectl", args...))
		if now := g.conversion(); !reflect.DeepEqual(now, applied) {
			t.Errorf("kubectl %s: %v, and run applies %v", args[0], now, applied)
		}
	}
}

// conversion is spec.conversion of the definition.
func (g *gitOps) conversion() map[string]any {
	g.t.Helper()
	c, _, err := unstructured.NestedMap(testkit.Get(g.t, definitions, "", "crontabs."+g.group).Object, "spec", "conversion")
	if err != nil {
		g.t.Fatal(err)
	}
	return c
}
