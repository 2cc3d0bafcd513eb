//go:build controlplane

package backup_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"filippo.io/age"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/backup"
	"github.com/corollary-dev/corollary/pkg/backup/archive"
)

// restored is the label of an object under test: its name.
const restored = "example.com/restored"

// notRestored are kinds that are left out, with the reason.
var notRestored = map[string]string{
	"APIService":                "one that nothing serves breaks discovery for every other test",
	"Namespace":                 "each takes long to delete, and restore creates those that are missing",
	"Event":                     "it tells of one moment, and one object is served in two groups",
	"IPAddress":                 "a Service's; its name is no label value, by which this test selects",
	"CertificateSigningRequest": "a request for one moment: the API server writes who made it, which is who restores it",
	"CustomResourceDefinition":  "restored by other means",
}

// seeds has the least that the API server takes of each kind, by apiVersion and kind.
func seeds(t *testing.T) map[string]string {
	t.Helper()
	text := must.Get(os.ReadFile("../../testdata/seeds.yaml")).In(t)
	out := map[string]string{}
	for part := range strings.SplitSeq(string(text), "\n---\n") {
		u := testkit.Parse(t, part)
		out[u.GetAPIVersion()+" "+u.GetKind()] = part
	}
	return out
}

// Objects of each kind that the API server serves come back, whether they were applied or created: what it generates is
// generated again.
func TestEveryKind(t *testing.T) {
	t.Parallel()
	finder := must.Get(discovery.NewDiscoveryClientForConfig(testkit.Config(t))).In(t)
	lists := must.Get(finder.ServerPreferredResources()).In(t)
	known, tested, ns := seeds(t), 0, testkit.Namespace(t)
	for _, list := range lists {
		gv, _ := schema.ParseGroupVersion(list.GroupVersion)
		for _, r := range list.APIResources {
			if notRestored[r.Kind] != "" || strings.HasSuffix(gv.Group, ".example.com") || !slices.Contains(r.Verbs, "create") ||
				!slices.Contains(r.Verbs, "list") {
				continue
			}
			seed := known[gv.String()+" "+r.Kind]
			if seed == "" {
				seed = "{apiVersion: " + gv.String() + ", kind: " + r.Kind + ", metadata: {name: NAME}}"
			}
			tested++
			restoreKind(t, gv.WithResource(r.Name), r, strings.NewReplacer("NAMESPACE", ns, "NUMBER", "77").Replace(seed), ns)
		}
	}
	if tested < 40 {
		t.Errorf("only %d kinds were tested", tested)
	}
}

func restoreKind(t *testing.T, gvr schema.GroupVersionResource, r metav1.APIResource, seed, ns string) {
	t.Helper()
	if !r.Namespaced {
		ns = ""
	}
	for _, applied := range []bool{true, false} {
		name := fmt.Sprintf("every-%t", applied)
		u := testkit.Parse(t, strings.ReplaceAll(seed, "NAME", name))
		u.SetOwnerReferences(nil)
		u.SetNamespace(ns)
		restoreObject(t, gvr, u, applied, nil, nil)
	}
}

// restoreObject makes an object, changes it, takes a backup, deletes it, and restores it.
func restoreObject(t *testing.T, gvr schema.GroupVersionResource, u *unstructured.Unstructured, applied bool, change, lost func()) {
	t.Helper()
	what := fmt.Sprintf("%s %s, applied: %t", gvr.GroupResource(), u.GetName(), applied)
	ns := u.GetNamespace()
	u.SetLabels(map[string]string{restored: u.GetName()})
	objects := testkit.Dynamic(t).Resource(gvr).Namespace(ns)
	var err error
	if applied {
		_, err = objects.Apply(t.Context(), u.GetName(), u, metav1.ApplyOptions{FieldManager: "operator"})
	} else {
		_, err = objects.Create(t.Context(), u, metav1.CreateOptions{FieldManager: "somebody"})
	}
	if err != nil {
		t.Errorf("%s: %v", what, err)
		return
	}
	if change != nil {
		change()
	}
	path := filepath.Join(t.TempDir(), "backup")
	selection := backup.Selection{GVK: gvr.GroupVersion().WithKind(u.GetKind()), Resource: gvr.Resource, Namespaced: ns != "",
		Choices: []backup.Choice{{Selector: labels.SelectorFromSet(labels.Set{restored: u.GetName()})}}}
	if ns != "" {
		selection.Namespaces = []string{ns}
	}
	identity := must.Get(age.GenerateX25519Identity()).In(t)
	b := &backup.Backup{Client: testkit.Dynamic(t), Kinds: []backup.Selection{selection}, Recipients: []age.Recipient{identity.Recipient()}}
	if _, _, err = b.Run(t.Context(), path); err != nil {
		t.Errorf("%s: %v", what, err)
		return
	}
	erase(t, gvr, ns, u.GetName())
	if lost != nil {
		lost()
	}
	w := &world{t: t}
	restorer := w.restore(testkit.Config(t), path, backup.Fail)
	if restorer.Archive, err = archive.Open(path, []age.Identity{identity}); err != nil {
		t.Fatal(err)
	}
	plan, result, err := run(t.Context(), restorer)
	if err != nil || len(result.Refused)+len(result.Changed) > 0 || result.Finished != 1 {
		t.Errorf("%s: %+v %+v: %v", what, plan, result, err)
		return
	}
	plan, _, err = run(t.Context(), restorer)
	if err != nil || plan.Kinds[0].Equal != 1 {
		t.Errorf("%s: again: %+v: %v", what, plan, err)
	}
}

func erase(t *testing.T, gvr schema.GroupVersionResource, ns, name string) {
	t.Helper()
	testkit.Patch(t, gvr, ns, name, "test", `{"metadata": {"finalizers": null}}`)
	testkit.DeleteWith(t, gvr, ns, name, metav1.DeletePropagationBackground)
	testkit.Eventually(t, patience, func() (bool, string) {
		_, err := testkit.Dynamic(t).Resource(gvr).Namespace(ns).Get(t.Context(), name, metav1.GetOptions{})
		return apierrors.IsNotFound(err), fmt.Sprint(err)
	})
}

// What Kubernetes' controllers wrote into an object is not restored, what someone asked for is; work that had finished
// is not done again.
func TestGenerated(t *testing.T) {
	t.Parallel()
	services := schema.GroupVersionResource{Version: "v1", Resource: "services"}
	claims := schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}
	accounts := schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}
	podsR := schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	ns := testkit.Namespace(t)
	kcm := func(gvr schema.GroupVersionResource, patch string) func() {
		return func() { testkit.Patch(t, gvr, ns, "x", "kube-controller-manager", patch) }
	}
	for _, test := range []struct {
		reason string
		gvr    schema.GroupVersionResource
		yaml   string
		change func()
		taken  string // an object that takes what was generated, %s is it
		path   []string
		same   bool
	}{
		{"an address that another Service has by now", services, "{apiVersion: v1, kind: Service, spec: {ports: [{port: 80}]}}", nil,
			"{apiVersion: v1, kind: Service, metadata: {name: other}, spec: {clusterIP: %s, ports: [{port: 80}]}}",
			[]string{"spec", "clusterIP"}, false},
		{"a Service without an address", services, "{apiVersion: v1, kind: Service, spec: {clusterIP: None, ports: [{port: 80}]}}", nil, "",
			[]string{"spec", "clusterIP"}, true},
		{"a node port that the author chose", services,
			"{apiVersion: v1, kind: Service, spec: {type: NodePort, ports: [{name: a, port: 80, nodePort: 31777}, {name: b, port: 81}]}}", nil, "",
			[]string{"spec", "ports"}, false},
		{"a claim that was bound", claims, "{apiVersion: v1, kind: PersistentVolumeClaim, spec: {accessModes: [ReadWriteOnce], " +
			"resources: {requests: {storage: 1Gi}}}}", kcm(claims,
			`{"metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}, "spec": {"volumeName": "pv"}}`), "",
			[]string{"spec", "volumeName"}, false},
		{"a claim of a volume that the author chose", claims, "{apiVersion: v1, kind: PersistentVolumeClaim, spec: {volumeName: pv, " +
			"accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}", nil, "", []string{"spec", "volumeName"}, true},
		{"an account with a generated token", accounts, "{apiVersion: v1, kind: ServiceAccount}", kcm(accounts, `{"secrets": [{"name": "x-token"}]}`), "",
			[]string{"secrets"}, false},
		{"a Pod on a node", podsR, "{apiVersion: v1, kind: Pod, spec: {terminationGracePeriodSeconds: 0, " +
			"containers: [{name: a, image: i}]}}", func() {
			binding := testkit.Parse(t, "{apiVersion: v1, kind: Binding, metadata: {name: x}, target: {apiVersion: v1, kind: Node, name: node}}")
			_, err := testkit.Dynamic(t).Resource(podsR).Namespace(ns).Create(t.Context(), binding, metav1.CreateOptions{}, "binding")
			if err != nil {
				t.Error(err)
			}
		}, "", []string{"spec", "nodeName"}, false},
	} {
		for _, applied := range []bool{true, false} {
			u := testkit.Parse(t, test.yaml)
			u.SetName("x")
			u.SetNamespace(ns)
			var before any
			restoreObject(t, test.gvr, u, applied, func() {
				if test.change != nil {
					test.change()
				}
				before, _, _ = unstructured.NestedFieldCopy(testkit.Get(t, test.gvr, ns, "x").Object, test.path...)
			}, func() {
				if test.taken != "" {
					testkit.Apply(t, ns, fmt.Sprintf(test.taken, before))
				}
			})
			after, _, _ := unstructured.NestedFieldCopy(testkit.Get(t, test.gvr, ns, "x").Object, test.path...)
			if same := fmt.Sprint(before) == fmt.Sprint(after); same != test.same {
				t.Errorf("%s, applied: %t: %v became %v", test.reason, applied, before, after)
			}
			if test.taken != "" {
				testkit.Delete(t, test.gvr, ns, "other")
			}
			erase(t, test.gvr, ns, "x")
		}
	}
}

// A Job that had finished is not run again, and one that had not goes on.
func TestJobs(t *testing.T) {
	t.Parallel()
	ns := testkit.Namespace(t)
	jobs := schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}
	podsR := schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	podsOf := func(job string) []unstructured.Unstructured { return testkit.List(t, podsR, ns, "job-name="+job) }
	finish := func(job string, many int) {
		testkit.Eventually(t, patience, func() (bool, string) { return len(podsOf(job)) >= many, "the Pods are missing" })
		for _, p := range podsOf(job)[:many] {
			testkit.Patch(t, podsR, ns, p.GetName(), "test", `{"status": {"phase": "Succeeded"}}`, "status")
		}
		testkit.Eventually(t, patience, func() (bool, string) {
			n, _, _ := unstructured.NestedInt64(testkit.Get(t, jobs, ns, job).Object, "status", "succeeded")
			return n == int64(many), fmt.Sprintf("%d of %d are done", n, many)
		})
	}
	for _, test := range []struct {
		job       string
		many      int // pods
		finished  int
		want      int
		condition string
	}{{"done", 1, 1, 0, "Complete"}, {"half", 2, 1, 1, ""}, {"suspended", 1, 0, 0, "Suspended"}} {
		u := testkit.Parse(t, fmt.Sprintf("{apiVersion: batch/v1, kind: Job, metadata: {name: %s}, spec: {suspend: %t, completions: %d, "+
			"parallelism: 2, template: {spec: {restartPolicy: Never, containers: [{name: a, image: i}]}}}}",
			test.job, test.finished == 0, test.many))
		u.SetNamespace(ns)
		restoreObject(t, jobs, u, true, func() {
			if test.finished > 0 {
				finish(test.job, test.finished)
			}
			testkit.Eventually(t, patience, func() (bool, string) {
				text := fmt.Sprint(testkit.Get(t, jobs, ns, test.job).Object["status"])
				return strings.Contains(text, test.condition), text
			})
		}, func() {
			for _, p := range podsOf(test.job) {
				erase(t, podsR, ns, p.GetName())
			}
		})
		testkit.Apply(
			t,
			ns,
			"{apiVersion: batch/v1, kind: Job, metadata: {name: after-"+test.job+"}, spec: {template: {spec: {restartPolicy: Never, "+
				"containers: [{name: a, image: i}]}}}}",
		)
		testkit.Eventually(t, patience, func() (bool, string) {
			return len(podsOf("after-"+test.job)) == 1 && len(podsOf(test.job)) >= test.want, fmt.Sprintf("%d Pods", len(podsOf(test.job)))
		})
		if got := podsOf(test.job); len(got) != test.want {
			t.Errorf("%s: the Job has %d Pods, want %d; its status is %v", test.job, len(got), test.want,
				testkit.Get(t, jobs, ns, test.job).Object["status"])
		}
	}
}
