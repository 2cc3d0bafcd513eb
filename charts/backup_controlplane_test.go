//go:build controlplane

package charts

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corollary-dev/corollary/internal/golden"
	"github.com/corollary-dev/corollary/internal/testkit"
)

// TestBackupTemplates renders the hook of helm upgrade.
func TestBackupTemplates(t *testing.T) {
	golden.Cases(t, "testdata/backup/*.txtar", func(t *testing.T, c *golden.Case) {
		manifest := render(t, "--values="+write(t, "values.yaml", c.Section("values.yaml")))
		c.Want(t, "rendered", only([]string{"backup-config", "backup-job", "backup-rbac"}, manifest))
	})
}

// TestBackupBeforeUpgrade: helm upgrade takes a backup with rights for that alone, and upgrades nothing if it cannot.
func TestBackupBeforeUpgrade(t *testing.T) {
	t.Parallel()
	i := &installation{T: t, name: "kept", kubeconfig: testkit.Kubeconfig(t), system: testkit.Namespace(t), apps: testkit.Namespace(t)}
	binary := build(t)
	i.kubelet = startKubelet(t, i.system, binary)
	site := testkit.Apply(t, i.apps, "{apiVersion: install.example.com/v1, kind: Site, metadata: {name: site}, spec: {name: page}}")
	for _, kind := range []string{"ConfigMap", "Secret"} {
		testkit.Apply(t, i.apps, fmt.Sprintf("{apiVersion: v1, kind: %s, metadata: {name: page, labels: {tools.example.com/managed-by: site}, "+
			"ownerReferences: [{apiVersion: install.example.com/v1, kind: Site, name: site, uid: %s}]}}", kind, site.GetUID()))
	}
	values := "--values=" + write(t, "values.yaml", fmt.Sprintf(`
image: {repository: registry.example.com/corollary}
replicas: 0
operators:
  site:
    watch: {apiVersion: install.example.com/v1, kind: Site, namespaces: [%s]}
    downstreams:
      - {name: page, apiVersion: v1, kind: ConfigMap, template: "metadata: {name: page}"}
      - {name: key, apiVersion: v1, kind: Secret, template: "metadata: {name: page}"}
    conventions:
      fieldManager: site
      labels: {tools.example.com/managed-by: site}
      hash: {annotation: tools.example.com/hash}
      owner: {reference: true}
      pause: {annotation: tools.example.com/paused}
    status: {conditions: {ready: Ready}}
backup: {beforeUpgrade: {claim: backups, backoffLimit: 0}}
`, i.apps))
	i.helm("install", i.name, chart, values, "--set=backup.beforeUpgrade.enabled=true", "--timeout=10m")
	if found, _ := filepath.Glob(i.kubelet.claim("backups") + "/*"); len(found) > 0 {
		t.Errorf("an installation took a backup: %v", found)
	}
	i.helm("upgrade", i.name, chart, values, "--set=backup.beforeUpgrade.enabled=true,workers=5", "--timeout=10m")
	hooks := grants(t, i.helm("get", "hooks", i.name))
	user := "system:serviceaccount:" + i.system + ":" + i.fullname() + ".backup"
	var own []grant
	for _, g := range hooks {
		if g.user == user {
			own = append(own, g)
		}
	}
	for _, right := range missing(own, i.system, testkit.Audit(t, testkit.By(user))) {
		t.Errorf("missing: %s", right)
	}
	for _, right := range superfluous(own, testkit.Audit(t, testkit.By(user))) {
		t.Errorf("superfluous: %s", right)
	}
	file := filepath.Join(i.kubelet.claim("backups"), "kept-before-2.tar.zst")
	out, err := exec.CommandContext(t.Context(), binary, "restore", file, "--dry-run", "--kubeconfig="+i.kubeconfig).CombinedOutput()
	if err != nil || string(out) != "sites.install.example.com: 1 equal\nconfigmaps: 1 equal\n0 would be created, 0 replaced, 0 finished\n" {
		t.Errorf("%v: %s", err, out)
	}

	testkit.Apply(t, i.system, "{apiVersion: v1, kind: ServiceAccount, metadata: {name: powerless}}")
	_, problems, err := helm(t, "upgrade", i.name, chart, values, "--set=backup.beforeUpgrade.enabled=true,workers=6",
		"--set=backup.beforeUpgrade.serviceAccountName=powerless", "--timeout=10m", "--namespace="+i.system, "--kubeconfig="+i.kubeconfig)
	if err == nil || !strings.Contains(problems, "pre-upgrade hooks failed") {
		t.Errorf("%v: %s", err, problems)
	}
	lacks := "rights are missing: list sites.install.example.com in namespace " + i.apps
	if log := i.kubelet.logOf(i.fullname() + "-backup"); !strings.Contains(log, lacks) {
		t.Error(log)
	}
	if text := fmt.Sprint(testkit.Get(t, deployments, i.system, i.fullname()).Object["spec"]); !strings.Contains(text, "--workers=5") {
		t.Errorf("it was upgraded: %s", text)
	}
}
