//go:build controlplane

package cli_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/generate"
	"github.com/corollary-dev/corollary/pkg/kinds"
)

var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// cronTabs is a kind in a group of its own whose spec.hostPort became spec.host and spec.port, with a conversion and its certificate.
type cronTabs struct {
	ns, group, dir string
	user           *rest.Config
	// certificate is the Secret with the webhook's certificate, which readOnly says is someone else's.
	certificate string
	readOnly    bool
}

const cronTabDefinition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: crontabs.GROUP}
spec:
  group: GROUP
  scope: Namespaced
  names: {plural: crontabs, singular: crontab, kind: CronTab, listKind: CronTabList}
  versions:
    - name: v1beta1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, required: [spec], properties: {spec: {type: object, required: [hostPort], properties: {
        hostPort: {type: string, pattern: '^[a-z0-9.-]+:[1-9][0-9]{0,4}$'}}}}}}
    - name: v1
      served: true
      storage: false
      schema: {openAPIV3Schema: {type: object, required: [spec], properties: {spec: {type: object, required: [host, port], properties: {
        host: {type: string, pattern: '^[a-z0-9.-]+$'}, port: {type: integer, format: int32, minimum: 1, maximum: 99999}}}}}}
`

const cronTabConversion = `
apiVersion: corollary.dev/v1alpha1
kind: Conversion
metadata: {name: crontabs}
for: {group: GROUP, kind: CronTab}
fieldManager: crontabs.GROUP
hub: v1
spokes:
  - version: v1beta1
    toHub:
      - {set: .spec.host, expression: "self.spec.hostPort.split(':')[0]"}
      - {set: .spec.port, expression: "int(self.spec.hostPort.split(':')[1])"}
      - {remove: [.spec.hostPort]}
    fromHub:
      - {set: .spec.hostPort, expression: "self.spec.host + ':' + string(self.spec.port)"}
      - {remove: [.spec.host, .spec.port]}
`

func newCronTabs(t *testing.T) *cronTabs {
	t.Helper()
	return newCronTabsOf(t, cronTabDefinition, cronTabConversion)
}

// newCronTabsOf has a definition and a conversion of the group GROUP.
func newCronTabsOf(t *testing.T, definition, conversion string) *cronTabs {
	t.Helper()
	c := &cronTabs{ns: testkit.Namespace(t), group: testkit.Unique(t) + ".example.com", dir: t.TempDir(), certificate: "webhook"}
	definition = strings.ReplaceAll(definition, "GROUP", c.group)
	testkit.InstallCRDs(t, definition)
	crd := filepath.Join(t.TempDir(), "crd.yaml")
	conversion = strings.ReplaceAll(conversion, "GROUP", c.group)
	for name, text := range map[string]string{crd: definition, c.file("conversion.yaml"): conversion} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	code, out := run(t, "convert", "prove", "-c", c.dir, "--crds", crd, "--objects", "500", "-o", c.file("certificate.yaml"))
	if code != 0 {
		t.Fatalf("exit code %d\n%s", code, out)
	}
	return c
}

func (c *cronTabs) file(name string) string { return filepath.Join(c.dir, name) }

func (c *cronTabs) resource(version string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: c.group, Version: version, Resource: "crontabs"}
}

func (c *cronTabs) serve(t *testing.T, address, bind string, more ...string) *process {
	t.Helper()
	return start(
		t,
		c.rights(t),
		append([]string{"run", "-c", c.dir, "--webhook-url", "https://" + address, "--webhook-bind-address", bind,
			"--webhook-secret", c.ns + "/" + c.certificate,
			fmt.Sprintf("--webhook-secret-read-only=%t", c.readOnly), "--metrics-bind-address", "0", "--health-probe-bind-address", "0",
			"--reload-interval", "1s"}, more...)...)
}

// rights are those that generate rbac derives, and no others.
func (c *cronTabs) rights(t *testing.T) *rest.Config {
	t.Helper()
	if c.user == nil {
		files, problems := config.LoadConversions(config.Options{Files: []string{c.dir}}, nil)
		if len(problems) > 0 || len(files) != 1 {
			t.Fatal(len(files), problems)
		}
		source, err := kinds.Offline()
		if err != nil {
			t.Fatal(err)
		}
		rights, err := generate.Rights(nil, generate.RBACOptions{Kinds: source, Process: generate.Identity{Namespace: c.ns, Name: "process"},
			Lease: "conversions", Conversions: files, Secret: c.certificate, SecretReadOnly: c.readOnly})
		if err != nil {
			t.Fatal(err)
		}
		var rules []rbacv1.PolicyRule
		for _, grant := range rights.Grants {
			for _, rule := range grant.Rules {
				rules = append(rules, rule.PolicyRule())
			}
		}
		c.user = testkit.User(t, testkit.Unique(t), rules...)
	}
	return c.user
}

// strategy is spec.conversion of the definition: the strategy, and the address.
func (c *cronTabs) strategy(t *testing.T) (strategy, url string) {
	t.Helper()
	crd := testkit.Get(t, definitions, "", "crontabs."+c.group)
	strategy, _, _ = unstructured.NestedString(crd.Object, "spec", "conversion", "strategy")
	url, _, _ = unstructured.NestedString(crd.Object, "spec", "conversion", "webhook", "clientConfig", "url")
	return strategy, url
}

func (c *cronTabs) eventuallyPublished(t *testing.T, address string) {
	t.Helper()
	testkit.Eventually(t, patience, func() (bool, string) {
		strategy, url := c.strategy(t)
		return strategy == "Webhook" && url == "https://"+address+"/convert", fmt.Sprintf("spec.conversion is %s by %q", strategy, url)
	})
}

// eventuallyReads waits until the API server, which takes a second to follow a changed definition, converts an object to v1.
func (c *cronTabs) eventuallyReads(t *testing.T, name, want string) {
	t.Helper()
	testkit.Eventually(t, patience, func() (bool, string) {
		u, err := testkit.Dynamic(t).Resource(c.resource("v1")).Namespace(c.ns).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		spec := fmt.Sprint(u.Object["spec"])
		return spec == want, "in v1 it is " + spec
	})
}

func (c *cronTabs) apply(t *testing.T, name, hostPort string) {
	t.Helper()
	testkit.Apply(
		t,
		c.ns,
		fmt.Sprintf("{apiVersion: %s/v1beta1, kind: CronTab, metadata: {name: %s}, spec: {hostPort: %q}}", c.group, name, hostPort),
	)
}

// TestRunServesConversions: what is proven is served and published, put back after someone has changed it, and the same after a
// restart.
func TestRunServesConversions(t *testing.T) {
	t.Parallel()
	c := newCronTabs(t)
	address := testkit.FreeAddress(t)
	first := c.serve(t, address, address)
	c.eventuallyPublished(t, address)
	c.apply(t, "a", "example.com:80")
	c.eventuallyReads(t, "a", "map[host:example.com port:80]")

	testkit.Update(t, definitions, "", "crontabs."+c.group, func(u *unstructured.Unstructured) {
		unstructured.RemoveNestedField(u.Object, "spec", "conversion", "webhook")
		_ = unstructured.SetNestedField(u.Object, "None", "spec", "conversion", "strategy")
	})
	c.eventuallyPublished(t, address)

	secret := testkit.Get(t, schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, c.ns, "webhook").GetResourceVersion()
	generation := testkit.Get(t, definitions, "", "crontabs."+c.group).GetGeneration()
	_ = first.Process.Kill()
	first.wait(t)
	second := c.serve(t, address, address)
	eventuallySays(t, second, "every conversion is published")
	c.eventuallyReads(t, "a", "map[host:example.com port:80]")
	if now := testkit.Get(
		t,
		schema.GroupVersionResource{Version: "v1", Resource: "secrets"},
		c.ns,
		"webhook",
	); now.GetResourceVersion() != secret {
		t.Error("a restart made another certificate")
	}
	if now := testkit.Get(t, definitions, "", "crontabs."+c.group).GetGeneration(); now != generation {
		t.Errorf("a restart changed the definition: generation %d, then %d", generation, now)
	}

	// A schema that changes is proven again, since the definition already names this webhook.
	testkit.Update(t, definitions, "", "crontabs."+c.group, func(u *unstructured.Unstructured) {
		for _, v := range u.Object["spec"].(map[string]any)["versions"].([]any) {
			_ = unstructured.SetNestedField(v.(map[string]any), map[string]any{"type": "string"},
				"schema", "openAPIV3Schema", "properties", "spec", "properties", "note")
		}
	})
	second.interrupt(t)
	second.wait(t)
	third := c.serve(t, address, address)
	c.eventuallyReads(t, "a", "map[host:example.com port:80]")

	// What replaces a process that answers is not ready as long as it cannot.
	bad := strings.ReplaceAll(strings.ReplaceAll(cronTabConversion, "GROUP", c.group), "split(':')[0]", "split(':')[1]")
	if err := os.WriteFile(c.file("conversion.yaml"), []byte(bad), 0o600); err != nil {
		t.Fatal(err)
	}
	eventuallySays(t, third, "the conversion has changed since it was proven")
	health := testkit.FreeAddress(t)
	fourth := c.serve(t, address, testkit.FreeAddress(t), "--health-probe-bind-address", health)
	eventuallySays(t, fourth, "the conversion has changed since it was proven")
	response, err := http.Get("http://" + health + "/readyz/conversions")
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if response.StatusCode == http.StatusOK {
		t.Error("it is ready")
	}
	c.eventuallyReads(t, "a", "map[host:example.com port:80]")
}

// TestUnprovenIsServedAfterRestart: what was proven and served is served by a process that starts after the schema has changed so that the
// proof fails, or the rules do not fit it any more. Next to one that converts, such a process does not become ready.
func TestUnprovenIsServedAfterRestart(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		reason string
		narrow func(properties map[string]any)
	}{
		{"a bound that a converted object breaks", func(properties map[string]any) {
			_ = unstructured.SetNestedField(properties, int64(100), "port", "maximum")
		}},
		{"a field of another type than the rules need", func(properties map[string]any) {
			properties["host"] = map[string]any{"type": "string", "maxLength": int64(3)}
			properties["port"] = map[string]any{"x-kubernetes-int-or-string": true}
		}},
	} {
		t.Run(row.reason, func(t *testing.T) {
			t.Parallel()
			c := newCronTabs(t)
			address := testkit.FreeAddress(t)
			first := c.serve(t, address, address)
			c.eventuallyPublished(t, address)
			c.apply(t, "a", "example.com:8080")
			c.eventuallyReads(t, "a", "map[host:example.com port:8080]")
			testkit.Update(t, definitions, "", "crontabs."+c.group, func(u *unstructured.Unstructured) {
				v := u.Object["spec"].(map[string]any)["versions"].([]any)[1].(map[string]any)
				properties, _, _ := unstructured.NestedMap(v, "schema", "openAPIV3Schema", "properties", "spec", "properties")
				row.narrow(properties)
				_ = unstructured.SetNestedMap(v, properties, "schema", "openAPIV3Schema", "properties", "spec", "properties")
			})
			eventuallySays(t, first, "not every conversion is published")

			health := testkit.FreeAddress(t)
			beside := c.serve(t, address, testkit.FreeAddress(t), "--health-probe-bind-address", health)
			eventuallySays(t, beside, "it has changed since the conversion was proven")
			testkit.Eventually(t, patience, func() (bool, string) {
				code := statusOf("http://" + health + "/readyz/conversions")
				return code == http.StatusInternalServerError, fmt.Sprint("the probe answers ", code)
			})
			_ = first.Process.Kill()
			first.wait(t)
			testkit.Eventually(t, patience, func() (bool, string) { // what it waited for has gone
				code := statusOf("http://" + health + "/readyz/conversions")
				return code == http.StatusOK, fmt.Sprint("the probe answers ", code)
			})
			c.serve(t, address, address)
			c.eventuallyReads(t, "a", "map[host:example.com port:8080]")
		})
	}
}

// statusOf is the HTTP status of an address; 0 where nothing answers.
func statusOf(url string) int {
	response, err := http.Get(url)
	if err != nil {
		return 0
	}
	_ = response.Body.Close()
	return response.StatusCode
}

// TestRunRefusesUnprovenConversions: without a certificate, or with that of other rules, the definition stays as it is.
func TestRunRefusesUnprovenConversions(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		reason, says string
		change       func(*testing.T, *cronTabs)
	}{
		{"nobody has proven it", "the conversion is not proven", func(t *testing.T, c *cronTabs) {
			if err := os.Remove(c.file("certificate.yaml")); err != nil {
				t.Fatal(err)
			}
		}},
		{"it is another one", "the conversion has changed since it was proven", func(t *testing.T, c *cronTabs) {
			text := strings.ReplaceAll(cronTabConversion, "split(':')[0]", "split(':')[1]")
			if err := os.WriteFile(c.file("conversion.yaml"), []byte(strings.ReplaceAll(text, "GROUP", c.group)), 0o600); err != nil {
				t.Fatal(err)
			}
		}},
		{"a field is lost in the schema of now", "it has changed since the conversion was proven", func(t *testing.T, c *cronTabs) {
			testkit.Update(t, definitions, "", "crontabs."+c.group, func(u *unstructured.Unstructured) {
				v := u.Object["spec"].(map[string]any)["versions"].([]any)[1].(map[string]any)
				_ = unstructured.SetNestedField(v, int64(100),
					"schema", "openAPIV3Schema", "properties", "spec", "properties", "port", "maximum")
			})
		}},
	} {
		t.Run(row.reason, func(t *testing.T) {
			t.Parallel()
			c := newCronTabs(t)
			row.change(t, c)
			address := testkit.FreeAddress(t)
			p := c.serve(t, address, address)
			eventuallySays(t, p, row.says)
			if strategy, _ := c.strategy(t); strategy != "None" {
				t.Errorf("spec.conversion.strategy is %s", strategy)
			}
		})
	}
}

// TestConversionsSurviveTheirReplicas: while objects are read and written in another version than they are stored in, one of two replicas
// after the other ends and comes back, as in a rollout. No request fails. If one is killed, only those fail that were sent to it: the API
// server does not ask again. The balancer plays the part of the Service.
func TestConversionsSurviveTheirReplicas(t *testing.T) {
	t.Parallel()
	c := newCronTabs(t)
	b := newBalancer(t)
	replicas := make([]*process, 2)
	serve := func(i int) {
		bind := testkit.FreeAddress(t)
		replicas[i] = c.serve(t, b.address, bind, "--leader-elect", "--leader-election-id", "conversions", "--leader-election-namespace", c.ns)
		b.set(i, bind)
	}
	serve(0)
	c.eventuallyPublished(t, b.address)
	serve(1)
	eventuallySays(t, replicas[1], "every conversion is published")
	c.apply(t, "a", "example.com:80")
	c.eventuallyReads(t, "a", "map[host:example.com port:80]")

	var failures, reads atomic.Int64
	var group sync.WaitGroup
	done := make(chan struct{})
	const readers = 4
	for range readers {
		group.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if _, err := testkit.Dynamic(t).Resource(c.resource("v1")).Namespace(c.ns).Get(t.Context(), "a", metav1.GetOptions{}); err != nil {
					failures.Add(1)
					t.Log(err)
				}
				reads.Add(1)
			}
		})
	}
	for round := range 4 {
		i := round % 2
		b.set(i, "") // the Service forgets a pod that is to end, before it ends
		replicas[i].interrupt(t)
		replicas[i].wait(t)
		serve(i)
		eventuallySays(t, replicas[i], "every conversion is published")
	}
	rolled := failures.Load()
	_ = replicas[0].Process.Kill()
	replicas[0].wait(t)
	more := func(n int64) {
		t.Helper()
		until := reads.Load() + n
		testkit.Eventually(t, patience, func() (bool, string) { return reads.Load() > until, fmt.Sprintf("%d reads", reads.Load()) })
	}
	more(5 * readers)
	killed := failures.Load() - rolled
	more(20 * readers)
	close(done)
	group.Wait()
	t.Logf("%d reads, of which %d failed by the kill", reads.Load(), killed)
	if rolled > 0 || failures.Load() > killed {
		t.Errorf("%d reads failed in the rollout, %d by the kill, and %d afterwards", rolled, killed, failures.Load()-killed-rolled)
	}
}

// balancer passes connections on to the replicas that are there.
type balancer struct {
	address string
	mu      sync.Mutex
	targets [2]string
	next    int
}

func newBalancer(t *testing.T) *balancer {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	b := &balancer{address: listener.Addr().String()}
	go func() {
		for {
			in, err := listener.Accept()
			if err != nil {
				return
			}
			go b.pass(in)
		}
	}()
	return b
}

func (b *balancer) set(i int, target string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.targets[i] = target
}

func (b *balancer) pick() (string, string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.next = 1 - b.next
	return b.targets[b.next], b.targets[1-b.next]
}

func (b *balancer) pass(in net.Conn) {
	defer func() { _ = in.Close() }()
	first, second := b.pick()
	out, err := net.DialTimeout("tcp", first, time.Second)
	if err != nil {
		if out, err = net.DialTimeout("tcp", second, time.Second); err != nil {
			return
		}
	}
	defer func() { _ = out.Close() }()
	go func() {
		_, _ = io.Copy(out, in)
		_ = out.Close()
	}()
	_, _ = io.Copy(in, out)
}
