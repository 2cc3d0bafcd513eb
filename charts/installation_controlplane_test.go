//go:build controlplane

package charts

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/internal/testkit"
	_ "github.com/corollary-dev/corollary/pkg/cli" // the command is this: a result that Go has kept is stale when it changes
)

// patience is how long a test waits for what has to come.
const patience = testkit.Patience

func resource(group, version, name string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: group, Version: version, Resource: name}
}

var (
	sites       = resource("install.example.com", "v1", "sites")
	backups     = resource("install.example.com", "v1", "backups")
	tenants     = resource("install.example.com", "v1", "tenants")
	appKinds    = resource("install.example.com", "v1", "apps")
	configMaps  = resource("", "v1", "configmaps")
	services    = resource("", "v1", "services")
	namespaces  = resource("", "v1", "namespaces")
	pods        = resource("", "v1", "pods")
	events      = resource("events.k8s.io", "v1", "events")
	leases      = resource("coordination.k8s.io", "v1", "leases")
	deployments = resource("apps", "v1", "deployments")
	jobs        = resource("batch", "v1", "jobs")
)

// installation is one release in namespaces of its own, and the pods of it.
type installation struct {
	*testing.T
	name, system, apps, shared, team, elsewhere string
	kubelet                                     *kubelet
	kubeconfig                                  string
	granted                                     []grant
}

// prepare makes what a release is installed into.
func prepare(t *testing.T, binary string) *installation {
	t.Helper()
	i := &installation{T: t, name: "rel", kubeconfig: testkit.Kubeconfig(t), system: testkit.Namespace(t), apps: testkit.Namespace(t),
		shared: testkit.Namespace(t), team: testkit.Namespace(t), elsewhere: testkit.Namespace(t)}
	i.kubelet = startKubelet(t, i.system, binary)
	t.Cleanup(func() { // however far it came: a right that is missing shows first by what does not happen
		for _, right := range missing(i.granted, i.system, testkit.Audit(t)) {
			t.Errorf("missing: %s", right)
		}
	})
	return i
}

// build builds the command as make build does it, but for the version: git is not asked, which refuses to look into
// another user's clone.
func build(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "corollary")
	command := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o", path, "../cmd/corollary")
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

// values returns a file of values with the namespaces filled in, and whatever more there is to replace.
func (i *installation) values(name string, more ...string) string {
	i.Helper()
	return write(i, name, strings.NewReplacer(append(more, "SYSTEM", i.system, "APPS", i.apps, "SHARED", i.shared, "TEAM", i.team,
		"ELSEWHERE", i.elsewhere)...).Replace(text(i, "testdata/install/"+name)))
}

// helm runs helm upon the release. Pods that run see what an upgrade changes in their mounts once it is done and the
// rights that came with it are in force: a kubelet takes longer than that.
func (i *installation) helm(args ...string) string {
	i.Helper()
	if args[0] == "upgrade" {
		i.kubelet.holdMounts(true)
		defer func() {
			if err := testkit.RightsInForce(i.Context()); err != nil {
				i.Error(err)
			}
			i.kubelet.holdMounts(false)
		}()
	}
	out, problems, err := helm(i, append(args, "--namespace="+i.system, "--kubeconfig="+i.kubeconfig)...)
	if err != nil {
		i.Fatalf("helm %v: %v\n%s%s", args, err, out, problems)
	}
	return out
}

// note notes the rights that the release gives now, those of its hooks included.
func (i *installation) note() {
	i.Helper()
	more := grants(i, i.helm("get", "manifest", i.name)+"\n---\n"+i.helm("get", "hooks", i.name))
	i.granted = append(i.granted, more...)
}

func (i *installation) fullname() string { return i.name + "-corollary" }

// holder is who holds the Lease, "" where nobody does.
func (i *installation) holder() string {
	lease := testkit.Find(i, leases, i.system, i.fullname())
	if lease == nil {
		return ""
	}
	holder, _, _ := unstructured.NestedString(lease.Object, "spec", "holderIdentity")
	return holder
}

func (i *installation) eventually(condition func() (bool, string)) {
	i.Helper()
	testkit.Eventually(i, patience, condition)
}

// ready waits until a custom resource says that all that follows from it is there.
func (i *installation) ready(gvr schema.GroupVersionResource, ns, name string) *unstructured.Unstructured {
	i.Helper()
	var u *unstructured.Unstructured
	i.eventually(func() (bool, string) {
		u = testkit.Get(i, gvr, ns, name)
		list, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
		for _, c := range list {
			if c, ok := c.(map[string]any); ok && c["type"] == "Ready" {
				return c["status"] == "True" && c["observedGeneration"] == u.GetGeneration(), name + ": " + str(c["reason"]) + ": " + str(c["message"])
			}
		}
		return false, name + " has no condition"
	})
	return u
}

func str(v any) string {
	s, _ := v.(string)
	return s
}

// has waits until an object has a text in a field.
func (i *installation) has(gvr schema.GroupVersionResource, ns, name, want string, path ...string) {
	i.Helper()
	i.eventually(func() (bool, string) {
		u := testkit.Find(i, gvr, ns, name)
		if u == nil {
			return false, name + " is not there"
		}
		have, _, _ := unstructured.NestedString(u.Object, path...)
		return have == want, name + ": " + strings.Join(path, ".") + " is " + have
	})
}

func (i *installation) gone(gvr schema.GroupVersionResource, ns, name string) {
	i.Helper()
	i.eventually(func() (bool, string) { return testkit.Find(i, gvr, ns, name) == nil, name + " is there still" })
}

// event waits for an event about an object.
func (i *installation) event(ns, name, reason string) {
	i.Helper()
	i.eventually(func() (bool, string) {
		return slices.ContainsFunc(testkit.List(i, events, ns, ""), func(e unstructured.Unstructured) bool {
			about, _, _ := unstructured.NestedString(e.Object, "regarding", "name")
			return about == name && str(e.Object["reason"]) == reason
		}), "there is no event " + reason + " about " + name
	})
}

// isReady reports whether a pod says that it is.
func isReady(pod unstructured.Unstructured) bool {
	list, _, _ := unstructured.NestedSlice(pod.Object, "status", "conditions")
	return slices.ContainsFunc(list, func(c any) bool {
		condition, _ := c.(map[string]any)
		return condition["type"] == "Ready" && condition["status"] == "True"
	})
}

// nothingLeft looks for objects of the release, and for the Lease, which its processes have made.
func (i *installation) nothingLeft() {
	for _, gvr := range []schema.GroupVersionResource{deployments, jobs, pods, configMaps, services, leases,
		resource("apps", "v1", "replicasets"), resource("", "v1", "serviceaccounts"), resource("", "v1", "secrets"),
		resource("policy", "v1", "poddisruptionbudgets"),
		resource("rbac.authorization.k8s.io", "v1", "roles"), resource("rbac.authorization.k8s.io", "v1", "rolebindings"),
		resource("rbac.authorization.k8s.io", "v1", "clusterroles"), resource("rbac.authorization.k8s.io", "v1", "clusterrolebindings")} {
		i.eventually(func() (bool, string) {
			left := testkit.List(i, gvr, "", "app.kubernetes.io/instance="+i.name)
			if gvr == leases {
				left = testkit.List(i, gvr, i.system, "")
			}
			if len(left) > 0 {
				return false, gvr.Resource + " are left: " + left[0].GetName()
			}
			return true, ""
		})
	}
}
