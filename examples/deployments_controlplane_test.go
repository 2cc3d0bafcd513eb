//go:build controlplane

package examples_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/cli"
)

// TestHello: a Deployment follows its WebApp from beginning to end.
func TestHello(t *testing.T) {
	t.Parallel()
	ns, webApps, image := testkit.Namespace(t), platform("webapps"), ".spec.template.spec.containers[name=web].image"
	runExample(t, "hello")
	state(t, ns, "hello")
	await(t, deployments, ns, "hello", fields{".spec.replicas": int64(2), image: "registry.example.com/hello:1.0"})
	await(t, webApps, ns, "hello", ready("False", "Progressing", "deployment: "))
	rollOut(t, ns, "hello")
	await(t, webApps, ns, "hello", ready("True", "Ready", "").with(fields{".status.downstreams[name=deployment].objectName": "hello"}))

	testkit.Patch(t, webApps, ns, "hello", "somebody", `{"spec":{"image":"registry.example.com/hello:2.0"}}`)
	await(t, deployments, ns, "hello", fields{image: "registry.example.com/hello:2.0"})
	await(t, webApps, ns, "hello", ready("False", "Progressing", "deployment: "))
	rollOut(t, ns, "hello")
	await(t, webApps, ns, "hello", ready("True", "Ready", ""))

	testkit.Patch(t, deployments, ns, "hello", "somebody", `{"spec":{"replicas":7}}`)
	await(t, deployments, ns, "hello", fields{".spec.replicas": int64(2)})
	testkit.Delete(t, webApps, ns, "hello")
	gone(t, deployments, ns, "hello")
}

// TestWebApp: the Ingress is there while it is asked for.
func TestWebApp(t *testing.T) {
	t.Parallel()
	webApps := schema.GroupVersionResource{Group: "tools.example.com", Version: "v1", Resource: "webapps"}
	ns := testkit.Namespace(t)
	o := runExample(t, "webapp")
	testkit.Apply(t, ns, "{apiVersion: tools.example.com/v1, kind: WebApp, metadata: {name: shop}, spec: {image: shop}}")
	await(t, deployments, ns, "shop", fields{})
	await(t, services, ns, "shop", fields{".spec.selector.app": "shop"})
	rollOut(t, ns, "shop")
	await(t, webApps, ns, "shop", ready("True", "Ready", "").with(fields{".status.url": ""}))
	if testkit.Find(t, ingresses, ns, "shop") != nil {
		t.Error("an Ingress stands that nobody asked for")
	}

	testkit.Patch(t, webApps, ns, "shop", "somebody", `{"spec":{"host":"shop.example.com"}}`)
	await(t, ingresses, ns, "shop", fields{".spec.rules[host=shop.example.com].http.paths[path=/].backend.service.name": "shop"})
	await(t, webApps, ns, "shop", fields{".status.url": "http://shop.example.com"})

	testkit.Patch(t, webApps, ns, "shop", "somebody", `{"spec":{"host":null}}`)
	gone(t, ingresses, ns, "shop")
	await(t, webApps, ns, "shop", ready("True", "Ready", "").with(fields{".status.url": "", ".status.downstreams[name=ingress].uid": nil}))
	o.idle()
	await(t, deployments, ns, "shop", fields{})
	await(t, services, ns, "shop", fields{})
	testkit.Delete(t, webApps, ns, "shop")
	gone(t, deployments, ns, "shop")
	gone(t, services, ns, "shop")
}

// TestDatabase: a password is made with its Secret, and stays.
func TestDatabase(t *testing.T) {
	t.Parallel()
	ns, databases := testkit.Namespace(t), platform("databases")
	runExample(t, "database")
	state(t, ns, "database")
	login := await(t, secrets, ns, "orders-login", fields{".data.username": "b3JkZXJz"})
	password, _ := at(login, ".data.password").(string)
	if len(password) != 44 { // 32 characters in base64
		t.Errorf("the password has %d characters in base64, want 44", len(password))
	}
	user := ".spec.template.spec.containers[name=postgres].env[name=POSTGRES_PASSWORD].valueFrom.secretKeyRef.name"
	await(t, statefulSets, ns, "orders", fields{user: "orders-login"})

	testkit.Patch(t, databases, ns, "orders", "somebody", `{"spec":{"user":"other"}}`)
	await(t, secrets, ns, "orders-login", fields{".data.username": "b3RoZXI=", ".data.password": password})
	testkit.Delete(t, databases, ns, "orders")
	gone(t, secrets, ns, "orders-login")
	gone(t, statefulSets, ns, "orders")
}

// TestBackup: a CronJob takes backups by a command that the real one understands, and its last success is the message of Ready.
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
