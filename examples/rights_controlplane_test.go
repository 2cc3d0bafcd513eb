//go:build controlplane

package examples_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/generate"
	"github.com/corollary-dev/corollary/pkg/kinds/discovered"
)

// account is who an operator of these tests runs as: someone who has been granted what `generate rbac` prints for its
// configs, and nothing else.
type account struct {
	generate.Identity
	rights *generate.RBAC
}

// grant makes an account for configs and applies its rights.
func grant(t *testing.T, files []*load.File) *account {
	t.Helper()
	cluster, err := discovered.New(testkit.Config(t))
	if err != nil {
		t.Fatal(err)
	}
	a := &account{Identity: generate.Identity{Namespace: "default", Name: testkit.Unique(t)}}
	if a.rights, err = generate.Rights(files, generate.RBACOptions{Kinds: cluster, Process: a.Identity}); err != nil {
		t.Fatal(err)
	}
	for _, m := range a.rights.Roles(a.Name) {
		u := &unstructured.Unstructured{Object: m.Object}
		if ns := u.GetNamespace(); ns != "" {
			testkit.Apply(t, "", "{apiVersion: v1, kind: Namespace, metadata: {name: "+ns+"}}")
		}
		testkit.Apply(t, u.GetNamespace(), marshal(t, u))
	}
	a.mayBind(t, files)
	for _, g := range a.rights.Grants {
		rule := g.Rules[len(g.Rules)-1]
		resource, sub, _ := strings.Cut(rule.Resource, "/")
		asked := testkit.Request{Verb: rule.Verbs[0], Group: rule.Group, Resource: resource + "/" + sub, Namespace: g.Namespace, Name: append(rule.Names, "")[0]}
		testkit.Eventually(t, patience, func() (bool, string) { return a.may(t, asked), fmt.Sprintf("%v is not granted yet", asked) })
	}
	return a
}

// mayBind grants what no config says: to bind the roles that people get, where a config makes RoleBindings.
func (a *account) mayBind(t *testing.T, files []*load.File) {
	t.Helper()
	binds := func(d config.Downstream) bool { return d.Kind == "RoleBinding" }
	if !slices.ContainsFunc(files, func(f *load.File) bool { return slices.ContainsFunc(f.Downstreams, binds) }) {
		return
	}
	testkit.Apply(t, "", `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: `+a.Name+`-bind}, rules: [
  {apiGroups: [rbac.authorization.k8s.io], resources: [clusterroles], resourceNames: [view, edit, admin], verbs: [bind]}]}`)
	testkit.Apply(t, "", `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: `+a.Name+`-bind},
  roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: `+a.Name+`-bind},
  subjects: [{kind: ServiceAccount, namespace: `+a.Namespace+`, name: `+a.Name+`}]}`)
	bind := testkit.Request{Verb: "bind", Group: "rbac.authorization.k8s.io", Resource: "clusterroles", Name: "view"}
	testkit.Eventually(t, patience, func() (bool, string) { return a.may(t, bind), "it may not bind yet" })
}

// config is a connection as the account.
func (a *account) config(t testing.TB) *rest.Config {
	cfg := rest.CopyConfig(testkit.Config(t))
	cfg.Impersonate = rest.ImpersonationConfig{UserName: a.user()}
	return cfg
}

func (a *account) user() string { return "system:serviceaccount:" + a.Namespace + ":" + a.Name }

// may asks the API server whether it authorizes a request of the account.
func (a *account) may(t *testing.T, r testkit.Request) bool {
	t.Helper()
	resource, sub, _ := strings.Cut(r.Resource, "/")
	review, err := testkit.Dynamic(t).Resource(schema.GroupVersionResource{Group: "authorization.k8s.io", Version: "v1", Resource: "subjectaccessreviews"}).
		Create(context.WithoutCancel(t.Context()), &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
			"spec": map[string]any{"user": a.user(), "resourceAttributes": map[string]any{
				"verb": strings.ToLower(r.Verb), "group": r.Group, "resource": resource, "subresource": sub, "namespace": r.Namespace, "name": r.Name,
			}},
		}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	allowed, _, _ := unstructured.NestedBool(review.Object, "status", "allowed")
	return allowed
}

// lacked are the requests that were refused for the lack of a right. Admission answers 403 too, as in a namespace that
// is going.
func (a *account) lacked(t *testing.T, c *testkit.Counter) []string {
	var list []string
	for _, r := range c.Requests(func(r testkit.Request) bool { return r.Code == http.StatusForbidden }) {
		if text := fmt.Sprintf("%s.%s in %q", r.Key(), r.Group, r.Namespace); !a.may(t, r) && !slices.Contains(list, text) {
			list = append(list, text)
		}
	}
	return list
}

// all is a config that takes every kind of right but guard.confirm's: in one namespace, without owner references, so
// that Corollary deletes by itself. Its upstreams are of a kind that no example works on while the tests run side by
// side: those that do watch every namespace.
const all = `
apiVersion: corollary.dev/v1alpha1
kind: Operator
metadata: {name: all}
watch:
  apiVersion: tools.example.com/v1beta1
  kind: Appoperator
  namespaces: [NAMESPACE]
  labelSelector: {matchExpressions: [{key: ignored, operator: DoesNotExist}]}
  namespaceSelector: {matchExpressions: [{key: ignored, operator: DoesNotExist}]}
inputs:
  - {name: settings, apiVersion: v1, kind: ConfigMap, fixedName: settings}
downstreams:
  - name: service
    apiVersion: v1
    kind: Service
    template: "{metadata: {name: 'web-{{ .spec.image }}'}, spec: {ports: [{port: 80}], selector: {app: {{ (input \"settings\").data.app }}}}}"
  - name: kept
    apiVersion: v1
    kind: Secret
    when: self.spec.?replicas.orValue(1) > 0
    template: "{metadata: {name: kept}, stringData: {a: b}}"
    deletionPolicy: Orphan
conventions:
  fieldManager: all
  labels: {tools.example.com/managed-by: all}
  hash: {annotation: tools.example.com/hash}
  owner: {reference: false, annotation: tools.example.com/owner}
  finalizer: tools.example.com/all
deletion:
  wait: true
  before:
    apiVersion: v1
    kind: PodTemplate
    template: "{metadata: {name: farewell}, template: {spec: {containers: [{name: a, image: a}]}}}"
    doneWhen: "'done' in downstream.metadata.?annotations.orValue({})"
status:
  conditions: {ready: Ready}
  downstreams: .status.downstreams
retry: {minDelay: 1s}
`

// unasked are rights that are granted and seen in no request, with the reason.
var unasked = map[string]string{
	"CREATE": "making an object by server-side apply is one request, a patch, and takes both rights",
	"LIST":   "a watch brings the first list along, where the API server can; else it is listed",
}

// TestRightsAreUsed takes one upstream through all that a config can ask for, and finds every right that was granted
// for it in a request.
func TestRightsAreUsed(t *testing.T) {
	t.Parallel()
	ns, services := testkit.Namespace(t), schema.GroupVersionResource{Version: "v1", Resource: "services"}
	upstreams := schema.GroupVersionResource{Group: "tools.example.com", Version: "v1beta1", Resource: "appoperators"}
	path := filepath.Join(t.TempDir(), "all.yaml")
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(all, "NAMESPACE", ns)), 0o600); err != nil {
		t.Fatal(err)
	}
	testkit.Apply(t, ns, "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {app: web}}")
	files := loaded(t, path)
	a := grant(t, files)
	o := operateAs(t, a, files)
	testkit.Apply(t, ns, "{apiVersion: tools.example.com/v1beta1, kind: Appoperator, metadata: {name: a}, spec: {image: one, tag: a}}")
	await(t, upstreams, ns, "a", ready("True", "Ready", ""))
	for range 2 { // equal events are counted up in the first
		testkit.Patch(t, services, ns, "web-one", "somebody", `{"spec":{"selector":{"app":"other"}}}`)
		await(t, services, ns, "web-one", fields{".spec.selector.app": "web"})
	}
	testkit.Patch(t, upstreams, ns, "a", "somebody", `{"spec":{"image":"two","replicas":0}}`)
	await(t, services, ns, "web-two", fields{})
	gone(t, services, ns, "web-one")
	testkit.Patch(t, upstreams, ns, "a", "somebody", `{"metadata":{"labels":{"ignored":""}}}`)
	gone(t, services, ns, "web-two")
	testkit.Patch(t, upstreams, ns, "a", "somebody", `{"metadata":{"labels":{"ignored":null}}}`)
	await(t, services, ns, "web-two", fields{})
	testkit.Delete(t, upstreams, ns, "a")
	templates := schema.GroupVersionResource{Version: "v1", Resource: "podtemplates"}
	await(t, templates, ns, "farewell", fields{})
	testkit.Patch(t, templates, ns, "farewell", "somebody", `{"metadata":{"labels":null,"annotations":{"done":""}}}`) // without its labels no watch shows it
	gone(t, upstreams, ns, "a")
	o.idle()

	testkit.Eventually(t, patience, func() (bool, string) { // events are sent when they are sent
		list := a.superfluous(o.Requests())
		return len(list) == 0, strings.Join(list, "\n")
	})
}

// superfluous are the rights that were granted and not asked for, in words.
func (a *account) superfluous(requests []testkit.Request) []string {
	asked := map[string]bool{}
	for _, r := range requests {
		asked[r.Key()+"."+r.Group] = true
	}
	var list []string
	for _, g := range a.rights.Grants {
		for _, rule := range g.Rules {
			for _, verb := range rule.Verbs {
				verb = strings.ToUpper(verb)
				if right := verb + " " + rule.Resource + "." + rule.Group; !asked[right] && unasked[verb] == "" {
					list = append(list, fmt.Sprintf("%s is granted (%s) and was not asked for", right, strings.Join(rule.For, ", ")))
				}
			}
		}
	}
	return list
}
