package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/generate"
	"github.com/corollary-dev/corollary/pkg/kinds"
)

var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// cronTabs is a kind in a group of its own whose spec.hostPort became spec.host and spec.port, with a conversion and
// its certificate.
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
		write(t, name, text)
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
		files, problems := load.Conversions(load.Options{Files: []string{c.dir}}, nil)
		if len(problems) > 0 || len(files) != 1 {
			t.Fatal(len(files), problems)
		}
		source := must(kinds.Offline())(t)
		rights := must(generate.Rights(nil, generate.RBACOptions{Kinds: source, Process: generate.Identity{Namespace: c.ns, Name: "process"},
			Lease: "conversions", Conversions: files, Secret: c.certificate, SecretReadOnly: c.readOnly}))(t)
		var rules []rbacv1.PolicyRule
		for _, grant := range rights.Grants {
			for _, rule := range grant.Rules {
				rules = append(rules, rbacv1.PolicyRule{APIGroups: []string{rule.Group}, Resources: []string{rule.Resource},
					ResourceNames: rule.Names, Verbs: rule.Verbs})
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

// eventuallyReads waits until the API server, which takes a second to follow a changed definition, converts an object
// to v1.
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

// store has the definition store a version.
func (c *cronTabs) store(t *testing.T, version string) {
	t.Helper()
	testkit.Update(t, definitions, "", "crontabs."+c.group, func(u *unstructured.Unstructured) {
		for _, v := range u.Object["spec"].(map[string]any)["versions"].([]any) {
			v := v.(map[string]any)
			v["storage"] = v["name"] == version
		}
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

// TestRunRefusesUnprovenConversions: without a certificate, or with that of other rules, the definition stays as it is.
func TestRunRefusesUnprovenConversions(t *testing.T) {
	t.Parallel()
	memory(t)
	for _, row := range []struct {
		reason, says string
		change       func(*testing.T, *cronTabs)
	}{
		{"nobody has proven it", "the conversion is not proven", func(t *testing.T, c *cronTabs) {
			ok(t, os.Remove(c.file("certificate.yaml")))
		}},
		{"it is another one", "the conversion has changed since it was proven", func(t *testing.T, c *cronTabs) {
			text := strings.ReplaceAll(cronTabConversion, "split(':')[0]", "split(':')[1]")
			write(t, c.file("conversion.yaml"), strings.ReplaceAll(text, "GROUP", c.group))
		}},
		{"a field is lost in the current schema", "it has changed since the conversion was proven", func(t *testing.T, c *cronTabs) {
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
			c.user = testkit.Config(t)
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
