//go:build controlplane

package cli_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// The schemas of three versions of one kind.
var walkSchemas = map[string]string{
	"v1beta1": `hostPort: {type: string, pattern: '^[a-z0-9.-]+:[1-9][0-9]{0,4}$'}`,
	"v1beta2": `host: {type: string, pattern: '^[a-z0-9.-]+$'}, port: {type: integer, format: int32, minimum: 1, maximum: 99999}`,
	"v1": `zone: {type: string}, address: {type: object, required: [host, port], properties: {
        host: {type: string, pattern: '^[a-z0-9.-]+$'}, port: {type: integer, format: int32, minimum: 1, maximum: 99999}}}`,
}

var walkRequired = map[string]string{"v1beta1": "hostPort", "v1beta2": "host, port", "v1": "address"}

// walkConversions are the rules between two versions that follow each other, by the hub.
var walkConversions = map[string]string{
	"v1beta2": `
  - version: v1beta1
    toHub:
      - {set: .spec.host, expression: "self.spec.hostPort.split(':')[0]"}
      - {set: .spec.port, expression: "int(self.spec.hostPort.split(':')[1])"}
      - {remove: [.spec.hostPort]}
    fromHub:
      - {set: .spec.hostPort, expression: "self.spec.host + ':' + string(self.spec.port)"}
      - {remove: [.spec.host, .spec.port]}
`,
	"v1": `
  - version: v1beta2
    rules: [{move: .spec.host, to: .spec.address.host}, {move: .spec.port, to: .spec.address.port}]
preserve: {annotation: example.com/preserved}
`,
}

// upgrade is a kind on its way through versions, with a process that converts it, and an object that several clients
// apply, each in the version that it knows.
type upgrade struct {
	*cronTabs
	t       *testing.T
	address string
	state   string
	clients map[string]string // client: the version that it applies
	applied int
	process *process
}

// restart has a new process serve, which knows nothing but what there is now.
func (w *upgrade) restart() {
	w.t.Helper()
	if w.process != nil {
		w.process.stop(w.t)
	}
	w.process = w.serve(w.t, w.address, w.address)
	eventuallySays(w.t, w.process, "conversion is published")
}

// definition has the versions of a state: NAME! is stored, NAME- is not served.
func (w *upgrade) definition(state string) string {
	text := fmt.Sprintf(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: crontabs.%[1]s}
spec:
  group: %[1]s
  scope: Namespaced
  names: {plural: crontabs, singular: crontab, kind: CronTab, listKind: CronTabList}
  versions:
`, w.group)
	for name := range strings.FieldsSeq(state) {
		version := strings.Trim(name, "!-")
		text += fmt.Sprintf("    - {name: %s, served: %t, storage: %t, schema: {openAPIV3Schema: {type: object, required: [spec], properties: "+
			"{spec: {type: object, required: [%s], properties: {note: {type: string}, %s}}}}}}\n", version, !strings.HasSuffix(name, "-"),
			strings.HasSuffix(name, "!"), walkRequired[version], walkSchemas[version])
	}
	return text
}

// configure writes the conversion through a hub, and proves it.
func (w *upgrade) configure(hub string) {
	w.t.Helper()
	crd := filepath.Join(w.t.TempDir(), "crd.yaml")
	older := map[string]string{"v1beta2": "v1beta1", "v1": "v1beta2"}[hub]
	conversion := fmt.Sprintf("apiVersion: corollary.dev/v1alpha1\nkind: Conversion\nmetadata: {name: crontabs}\n"+
		"for: {group: %[1]s, kind: CronTab}\nfieldManager: crontabs.%[1]s\nhub: %[2]s\nspokes:%[3]s", w.group, hub, walkConversions[hub])
	for name, text := range map[string]string{crd: w.definition(older + "! " + hub), w.file("conversion.yaml"): conversion} {
		write(w.t, name, text)
	}
	expect(w.t, 0, "", "convert", "prove", "-c", w.dir, "--crds", crd, "--objects", "300", "-o", w.file("certificate.yaml"))
}

// enter changes the definition, and waits until the API server goes by that, and all clients can work.
func (w *upgrade) enter(state string) {
	w.t.Helper()
	w.state = state
	testkit.Apply(w.t, "", w.definition(state))
	testkit.Eventually(w.t, patience, func() (bool, string) {
		strategy, _ := w.strategy(w.t)
		want := "Webhook"
		if len(strings.Fields(state)) == 1 {
			want = "None"
		}
		return strategy == want, fmt.Sprintf("%s: the strategy is %s", state, strategy)
	})
	w.work()
}

// work has every client apply once more in its version, where that is served, and reads what came of it in every
// version.
func (w *upgrade) work() {
	w.t.Helper()
	w.applied++
	served := map[string]bool{}
	for name := range strings.FieldsSeq(w.state) {
		served[strings.Trim(name, "!-")] = !strings.HasSuffix(name, "-")
	}
	specs := map[string]string{
		"v1beta1": fmt.Sprintf(`{"hostPort": "example.com:%d"}`, w.applied), "v1beta2": fmt.Sprintf(`{"host": "example.com", "port": %d}`, w.applied),
		"v1": fmt.Sprintf(`{"address": {"host": "example.com", "port": %d}, "zone": "UTC"}`, w.applied), // no other version has the zone
	}
	for client, version := range w.clients {
		if !served[version] {
			continue
		}
		u := testkit.Parse(w.t, fmt.Sprintf(`{"apiVersion": "%s/%s", "kind": "CronTab", "metadata": {"name": %q}, "spec": %s}`,
			w.group, version, w.object(client), specs[version]))
		testkit.Eventually(w.t, patience, func() (bool, string) {
			_, err := testkit.Dynamic(w.t).Resource(w.resource(version)).Namespace(w.ns).
				Apply(w.t.Context(), u.GetName(), u, metav1.ApplyOptions{FieldManager: client, Force: true})
			return err == nil, fmt.Sprintf("%s: %s applies %s: %v", w.state, client, version, err)
		})
	}
	for version, isServed := range served {
		for client, applies := range w.clients {
			if !isServed {
				continue
			}
			name := w.object(client)
			want := testkit.Parse(w.t, `{"spec": `+specs[version]+`}`).Object["spec"].(map[string]any)
			if name == "b" && applies != "v1" { // who goes on to a version without the zone gives it up
				delete(want, "zone")
			}
			testkit.Eventually(w.t, patience, func() (bool, string) {
				u, err := testkit.Dynamic(w.t).Resource(w.resource(version)).Namespace(w.ns).Get(w.t.Context(), name, metav1.GetOptions{})
				if err != nil {
					return false, fmt.Sprintf("%s: reading %s: %v", w.state, version, err)
				}
				return fmt.Sprint(u.Object["spec"]) == fmt.Sprint(want), fmt.Sprintf("%s: %s in %s is %v", w.state, name, version, u.Object["spec"])
			})
		}
	}
}

// object is what a client applies: the follower, who uses a new version as soon as it is there, has one of its own.
func (w *upgrade) object(client string) string {
	if client == "follower" {
		return "b"
	}
	return "a"
}

func (w *upgrade) migrate() {
	w.t.Helper()
	if code, out := run(w.t, "migrate", "crontabs."+w.group, "--kubeconfig", testkit.Kubeconfig(w.t), "--dry-run"); len(w.stored(w.t)) > 1 &&
		(code == 0 || !strings.Contains(out, "nothing proves that it loses nothing")) {
		w.t.Fatalf("without a certificate: exit code %d\n%s", code, out)
	}
	testkit.Eventually(w.t, patience, func() (bool, string) {
		code, out := run(w.t, "migrate", "crontabs."+w.group, "-c", w.dir, "--kubeconfig", testkit.Kubeconfig(w.t))
		return code == 0, out
	})
	if stored := w.stored(w.t); len(stored) != 1 {
		w.t.Fatalf("%s: stored are %v", w.state, stored)
	}
}

func (c *cronTabs) stored(t *testing.T) []string {
	t.Helper()
	versions, _, _ := unstructured.NestedStringSlice(testkit.Get(t, definitions, "", "crontabs."+c.group).Object, "status", "storedVersions")
	return versions
}

// TestMigrateKeepsWhatNobodyConverts: without a webhook, a version that declares less would drop the rest for good.
func TestMigrateKeepsWhatNobodyConverts(t *testing.T) {
	t.Parallel()
	c := newCronTabs(t)
	c.apply(t, "a", "example.com:80")
	c.store(t, "v1")
	testkit.Eventually(t, patience, func() (bool, string) { return len(c.stored(t)) == 2, "v1 is not stored yet" })
	arguments := []string{"migrate", "crontabs." + c.group, "--kubeconfig", testkit.Kubeconfig(t)}
	code, out := run(t, arguments...)
	if want := "version v1 drops what others have: v1beta1 .spec.hostPort:"; code != 1 || !strings.Contains(out, want) {
		t.Fatalf("exit code %d\n%s", code, out)
	}
	if stored := c.stored(t); len(stored) != 2 {
		t.Errorf("stored are %v", stored)
	}
	expect(t, 0, "warning: ", append(arguments, "--unproven")...)
}

// TestUpgradeAndBack walks from v1beta1 by v1beta2 to v1, where each old version is removed, and all the way back. In
// each state clients apply in every version that is served, those too that began with one that is gone; nothing that
// they apply is lost.
func TestUpgradeAndBack(t *testing.T) {
	t.Parallel()
	w := &upgrade{cronTabs: newCronTabs(t), t: t, address: testkit.FreeAddress(t),
		clients: map[string]string{"first": "v1beta1", "follower": "v1beta1"}}
	w.configure("v1beta2")
	w.restart()
	w.enter("v1beta1!")
	for _, step := range []struct{ hub, from, to string }{
		{"v1beta2", "v1beta1", "v1beta2"},
		{"v1", "v1beta2", "v1"},
		{"v1", "v1", "v1beta2"},
		{"v1beta2", "v1beta2", "v1beta1"},
	} {
		w.configure(step.hub)
		w.clients["new "+step.to], w.clients["follower"] = step.to, step.to
		w.enter(step.from + "! " + step.to)
		w.enter(step.from + " " + step.to + "!")
		w.enter(step.from + "- " + step.to + "!") // too early: nothing is migrated
		w.restart()
		w.work()
		w.enter(step.from + " " + step.to + "!")
		w.migrate()
		w.work()
		w.enter(step.from + "- " + step.to + "!")
		w.migrate() // those who have applied in the meantime
		w.work()
		for client, version := range w.clients {
			if version == step.from {
				w.clients[client] = step.to
			}
		}
		w.enter(step.to + "!")
	}
}
