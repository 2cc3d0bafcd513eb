//go:build controlplane

package charts

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/internal/testkit"
)

// TestInstall installs the chart by the real helm, upgrades it and takes it away again, on a real API server with the
// real controllers of Deployments, ReplicaSets and Jobs. The pods are processes of the real command with the tokens of
// the accounts that were installed (kubelet is the only double), and the operators do their whole job. In the end the
// API server's audit log says what the rights that were granted have been used for: one that was missing fails the
// test, and so does one that nobody has used.
func TestInstall(t *testing.T) {
	t.Parallel()
	i := prepare(t, build(t))
	i.arrange()
	i.comeAndGo()
	i.helm("install", i.name, chart, "--values="+i.values("values.yaml"), "--wait", "--timeout=10m")
	i.note()
	i.operate()
	i.failOver()
	i.list()
	i.upgrade()
	i.uninstall()
	for _, right := range superfluous(i.granted, testkit.Audit(t)) {
		// The hook takes owner references off what a config keeps: there are some only if the config was changed while no
		// process ran.
		if !strings.Contains(right, ".release may patch namespaces.") {
			t.Errorf("superfluous: %s", right)
		}
	}
}

// comeAndGo installs a release of which no pod ever runs. It can be taken away as well.
func (i *installation) comeAndGo() {
	i.helm("install", i.name, chart, "--values="+i.values("values.yaml"), "--set=replicas=0", "--wait", "--timeout=10m")
	i.note()
	i.helm("uninstall", i.name, "--timeout=10m")
	i.nothingLeft()

	// Where the hook fails, helm says so, the Job is left for its log, and there is a way without it.
	testkit.Apply(i, i.system, "{apiVersion: v1, kind: ServiceAccount, metadata: {name: powerless}}")
	i.helm("install", i.name, chart, "--values="+i.values("values.yaml"),
		"--set=replicas=0,rbac.create=false,release.serviceAccountName=powerless,release.backoffLimit=0")
	_, problems, err := helm(i, "uninstall", i.name, "--timeout=10m", "--namespace="+i.system, "--kubeconfig="+i.kubeconfig)
	if err == nil || !strings.Contains(problems, i.fullname()+"-release") {
		i.Errorf("%v: %s", err, problems)
	}
	i.Log(problems)
	testkit.Get(i, jobs, i.system, i.fullname()+"-release")
	if log := i.kubelet.logOf(i.fullname() + "-release"); !strings.Contains(log, "scaling Deployment "+i.system+"/"+i.fullname()+" to 0: ") {
		i.Error(log)
	}
	i.helm("uninstall", i.name, "--no-hooks", "--timeout=10m")
	testkit.Delete(i, jobs, i.system, i.fullname()+"-release")
	i.nothingLeft()
}

// arrange makes what is there before the operators are.
func (i *installation) arrange() {
	testkit.Patch(i, namespaces, "", i.team, "test", `{"metadata": {"labels": {"install.example.com/team": "yes"}}}`)
	testkit.Apply(i, i.shared, "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {theme: dark}}")
}

func (i *installation) site() string {
	return `{apiVersion: install.example.com/v1, kind: Site, metadata: {name: site, labels: {install.example.com/live: "yes"}}, spec: {name: page, secret: door}}`
}

// operate has each operator do all that it can.
func (i *installation) operate() {
	i.eventually(func() (bool, string) { return i.holder() != "", "nobody leads" })

	testkit.Apply(i, i.apps, i.site())
	i.ready(sites, i.apps, "site")
	i.has(configMaps, i.apps, "page", "unknown", "data", "secret")
	testkit.Apply(i, i.apps, "{apiVersion: v1, kind: Secret, metadata: {name: door}}") // an input that comes later
	i.has(configMaps, i.apps, "page", "known", "data", "secret")
	testkit.Patch(i, configMaps, i.shared, "settings", "test", `{"data": {"theme": "light"}}`) // one that changes
	i.has(configMaps, i.apps, "page", "light", "data", "theme")
	for range 2 { // drift; the second event is added to the first one
		testkit.Patch(i, configMaps, i.apps, "page", "somebody", `{"data": {"theme": "mine"}}`)
		i.has(configMaps, i.apps, "page", "light", "data", "theme")
	}
	i.event(i.apps, "site", "Repaired")
	testkit.Patch(i, sites, i.apps, "site", "test", `{"spec": {"name": "start"}}`) // another name
	i.has(configMaps, i.apps, "start", "light", "data", "theme")
	i.gone(configMaps, i.apps, "page")
	i.ready(sites, i.apps, "site")

	// One that loses its label, and one that is deleted after its backup has been made.
	testkit.Apply(i, i.apps, strings.NewReplacer("name: site", "name: brief", "name: page", "name: brief").Replace(i.site()))
	i.ready(sites, i.apps, "brief")
	testkit.Patch(i, sites, i.apps, "brief", "test", `{"metadata": {"labels": {"install.example.com/live": null}}}`)
	i.gone(configMaps, i.apps, "brief")
	i.backUp("old", `{"metadata": {"labels": {"install.example.com/managed-by": null}}}`) // lost from sight
	i.backUp("orphan", `{"metadata": {"ownerReferences": null}}`)                         // as deleting with --cascade=orphan does

	i.operateTenant()
	i.operateApp()
}

// backUp deletes a site, which waits for its backup, after someone has changed that.
func (i *installation) backUp(name, done string) {
	testkit.Apply(i, i.apps, strings.NewReplacer("name: site", "name: "+name, "name: page", "name: "+name).Replace(i.site()))
	i.ready(sites, i.apps, name)
	testkit.Delete(i, sites, i.apps, name)
	i.eventually(func() (bool, string) { return testkit.Find(i, backups, i.apps, name) != nil, "no backup is made" })
	testkit.Patch(i, backups, i.apps, name, "test", done)
	testkit.Patch(i, backups, i.apps, name, "test", `{"status": {"done": true}}`)
	i.gone(sites, i.apps, name)
	i.gone(configMaps, i.apps, name)
	i.gone(backups, i.apps, name)
}

func (i *installation) operateTenant() {
	name := testkit.Unique(i)
	tenant := "{apiVersion: install.example.com/v1, kind: Tenant, metadata: {name: " + name +
		`, labels: {install.example.com/live: "yes"}}, spec: {tier: gold}}`
	testkit.Apply(i, "", tenant)
	i.ready(tenants, "", name)
	for range 2 {
		testkit.Patch(i, namespaces, "", name, "somebody", `{"metadata": {"labels": {"install.example.com/tier": "lead"}}}`)
		i.has(namespaces, "", name, "gold", "metadata", "labels", "install.example.com/tier")
	}
	testkit.Apply(i, "", strings.Replace(tenant, name, name+"-stays", 1))
	i.ready(tenants, "", name+"-stays")
	testkit.Patch(i, tenants, "", name, "test", `{"metadata": {"labels": {"install.example.com/live": null}}}`)
	i.eventually(func() (bool, string) { // kept, without our marks
		return testkit.Get(i, namespaces, "", name).GetLabels()["install.example.com/managed-by"] == "", "it is not released"
	})
	testkit.Delete(i, tenants, "", name)
	i.gone(tenants, "", name)
	if testkit.Get(i, namespaces, "", name).GetDeletionTimestamp() != nil {
		i.Error("what is to be kept went")
	}
}

func (i *installation) operateApp() {
	app := `{apiVersion: install.example.com/v1, kind: App, metadata: {name: app, labels: {install.example.com/live: "yes"}}, spec: {words: hello, port: 80}}`
	testkit.Apply(i, i.team, app)
	i.ready(appKinds, i.team, "app")
	testkit.Patch(i, configMaps, i.team, "app", "somebody", `{"data": {"words": "none"}}`)
	i.has(configMaps, i.team, "app", "hello", "data", "words")
	testkit.Patch(i, services, i.elsewhere, "app", "somebody", `{"spec": {"selector": {"app": "other"}}}`)
	i.has(services, i.elsewhere, "app", "app", "spec", "selector", "app")
	testkit.Apply(i, i.team, strings.Replace(app, "name: app", "name: brief", 1))
	i.ready(appKinds, i.team, "brief")
	testkit.Patch(i, appKinds, i.team, "brief", "test", `{"metadata": {"labels": {"install.example.com/live": null}}}`)
	i.gone(configMaps, i.team, "brief")
	i.gone(services, i.elsewhere, "brief")
	testkit.Delete(i, appKinds, i.team, "brief")
	i.gone(appKinds, i.team, "brief")
}

// failOver deletes the pod that leads: the other one goes on, and a new one waits as a standby.
func (i *installation) failOver() {
	const atWork = `"operator":"site","reason":"Running"`
	before, led := i.holder(), i.kubelet.running(atWork)
	testkit.Delete(i, pods, i.system, led.pod.Name)
	i.eventually(func() (bool, string) { return i.holder() != "" && i.holder() != before, "nobody else leads" })
	i.eventually(func() (bool, string) { // guard asks about what is different when it begins
		leads := i.kubelet.running(atWork)
		return leads != nil && leads != led, "nobody else is at work"
	})
	testkit.Patch(i, configMaps, i.apps, "start", "somebody", `{"data": {"theme": "mine"}}`)
	i.has(configMaps, i.apps, "start", "light", "data", "theme")
	i.eventually(func() (bool, string) { // the Deployment may count the one that was deleted for a while
		list := testkit.List(i, pods, i.system, "")
		ready := slices.DeleteFunc(slices.Clone(list), func(pod unstructured.Unstructured) bool {
			return pod.GetDeletionTimestamp() != nil ||
				!isReady(pod)
		})
		return len(list) == 2 && len(ready) == 2, fmt.Sprintf("of %d pods %d are ready", len(list), len(ready))
	})
	i.eventually(func() (bool, string) {
		n, _, _ := unstructured.NestedInt64(testkit.Get(i, deployments, i.system, i.fullname()).Object, "status", "readyReplicas")
		return n == 2, fmt.Sprintf("%d pods are ready", n)
	})
}

// list has the pods list what they watch, as they have to where the API server does not stream what there is into a
// watch: that is behind a feature of client-go's. It takes other pods.
func (i *installation) list() {
	before := i.kubelet.count()
	i.helm("upgrade", i.name, chart, "--values="+i.values("values.yaml"), "--values="+i.values("list.yaml"), "--wait", "--timeout=10m")
	i.note()
	i.eventually(func() (bool, string) {
		n := len(testkit.List(i, pods, i.system, ""))
		return n == 2 && i.holder() != "", fmt.Sprintf("there are %d pods", n)
	})
	must.Same(i, 2, i.kubelet.count()-before, "there were", "new pods")
}

// upgrade changes one operator, which waits to be confirmed, and adds one, without another pod.
func (i *installation) upgrade() {
	before := i.kubelet.count()
	testkit.Apply(i, i.elsewhere,
		`{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: app}, spec: {defaultBackend: {service: {name: elses, port: {number: 1}}}}}`)
	i.helm("upgrade", i.name, chart, "--values="+i.values("values.yaml"), "--values="+i.values("list.yaml"),
		"--values="+i.values("upgrade.yaml"), "--wait", "--timeout=10m")
	i.note()
	leading := func(says string) func() (bool, string) {
		return func() (bool, string) {
			return i.kubelet.running(says) != nil, "no pod says " + says
		}
	}
	i.eventually(leading(`"a change waits for confirmation"`))
	i.eventually(leading(`"reason":"Observing"`))
	i.eventually(leading(`mode Observe: action not carried out`))
	i.has(configMaps, i.apps, "start", "one", "data", "release")
	configs := filepath.Join(i.kubelet.running("").dir, "config")
	planned, _ := exec.CommandContext(i.Context(), i.kubelet.binary, "plan", "-c", configs, "--no-diff", "--kubeconfig",
		i.kubeconfig).CombinedOutput()
	digest := regexp.MustCompile("operator site: .* with the digest ([0-9a-f]+)").FindSubmatch(planned)
	if digest == nil {
		i.Fatalf("plan tells no digest:\n%s", planned)
	}
	confirm := exec.CommandContext(i.Context(), i.kubelet.binary, "confirm", "-c", configs, "site", "--digest", string(digest[1]),
		"--kubeconfig", i.kubeconfig)
	if out, err := confirm.CombinedOutput(); err != nil {
		i.Fatalf("%v\n%s", err, out)
	}
	i.has(configMaps, i.apps, "start", "two", "data", "release")
	i.event(i.apps, "site", "Updated")
	i.eventually(leading(`"changed config active"`))

	// Another change, which nothing has to be changed for.
	i.helm("upgrade", i.name, chart, "--reuse-values", "--set=operators.site.retry.minDelay=2s", "--wait", "--timeout=10m")
	i.eventually(func() (bool, string) {
		for _, e := range testkit.List(i, events, i.system, "") {
			if n, _, _ := unstructured.NestedInt64(e.Object, "series", "count"); str(e.Object["reason"]) == "Reloaded" && n >= 2 {
				return true, ""
			}
		}
		return false, "no event says that it was reloaded twice"
	})
	must.Same(i, 0, i.kubelet.count()-before, "there were", "new pods")
}

// uninstall takes the release away, once no deletion waits for its backup. What there was of custom resources stays,
// and can be deleted.
func (i *installation) uninstall() {
	if f := testkit.Get(i, sites, i.apps, "site").GetFinalizers(); !slices.Contains(f, "install.example.com/site") {
		i.Errorf("finalizers are %v", f)
	}
	testkit.Apply(i, i.apps, strings.NewReplacer("name: site", "name: late", "name: page", "name: late").Replace(i.site()))
	i.ready(sites, i.apps, "late")
	testkit.Delete(i, sites, i.apps, "late") // its backup has not been made yet
	i.eventually(func() (bool, string) { return testkit.Find(i, backups, i.apps, "late") != nil, "no backup is made" })
	if out, _, err := helm(i, "uninstall", i.name, "--timeout=10m", "--namespace="+i.system, "--kubeconfig="+i.kubeconfig); err == nil {
		i.Errorf("it is uninstalled before the backup of a site that is being deleted: %s", out)
	}
	testkit.Patch(i, backups, i.apps, "late", "test", `{"status": {"done": true}}`)
	i.gone(sites, i.apps, "late")                                                                               // the operator runs still
	testkit.Apply(i, i.apps, "{apiVersion: install.example.com/v1, kind: Backup, metadata: {name: forgotten, "+ // of which nobody knows
		"labels: {install.example.com/managed-by: site}, finalizers: [install.example.com/site]}}")
	i.helm("uninstall", i.name, "--timeout=10m")
	if f := testkit.Get(i, backups, i.apps, "forgotten").GetFinalizers(); len(f) > 0 {
		i.Errorf("the finalizers of a backup are %v", f)
	}
	i.Log(i.kubelet.logOf(i.fullname() + "-release"))
	i.eventually(func() (bool, string) { return len(testkit.List(i, pods, i.system, "")) == 0, "there are pods still" })
	i.nothingLeft()
	left := []struct {
		gvr      schema.GroupVersionResource
		ns, name string
	}{{sites, i.apps, "site"}, {configMaps, i.apps, "start"}, {appKinds, i.team, "app"}, {configMaps, i.team, "app"},
		{services, i.elsewhere, "app"}}
	for _, o := range left {
		if u := testkit.Get(i, o.gvr, o.ns, o.name); len(u.GetFinalizers()) > 0 || u.GetDeletionTimestamp() != nil {
			i.Errorf("%s %s: finalizers %v, deleted %v", o.gvr.Resource, o.name, u.GetFinalizers(), u.GetDeletionTimestamp())
		}
	}
	testkit.Delete(i, services, i.elsewhere, "app") // which no owner reference can reach
	testkit.Delete(i, sites, i.apps, "site")
	testkit.Delete(i, appKinds, i.team, "app")
	for _, o := range left {
		i.gone(o.gvr, o.ns, o.name)
	}
}
