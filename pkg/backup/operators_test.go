package backup_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"filippo.io/age"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/backup"
	"github.com/corollary-dev/corollary/pkg/backup/archive"
)

var secrets = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}

// operated is a cluster in memory with an operator, whose upstreams are shops, and whose downstreams are Secrets.
type operated struct {
	*inMemory
	operator archive.Operator
	key      *age.X25519Identity
}

// operatorWith has names with an ending.
func operatorWith(ending string) archive.Operator {
	return archive.Operator{Name: "site", Upstream: "shops.example.com", Pause: "example.com/paused" + ending,
		Owners: []string{"example.com/owner" + ending}, FieldManagers: []string{"site" + ending},
		Finalizers: []string{"example.com/site" + ending}, Hashes: []archive.Key{{Annotation: "example.com/hash" + ending}},
		Labels: map[string]string{"example.com/by" + ending: "site" + ending}}
}

func newOperated(t *testing.T, operator archive.Operator) *operated {
	t.Helper()
	return newOperatedOf(t, operator, shopDefinition)
}

// newOperatedOf has another definition of the upstreams.
func newOperatedOf(t *testing.T, operator archive.Operator, definition string) *operated {
	t.Helper()
	key := must.Get(age.GenerateX25519Identity()).In(t)
	o := &operated{newInMemory(t, definition), operator, key}
	for _, name := range []string{"shared", "copy"} {
		o.putNamespace(name)
	}
	return o
}

func (o *operated) apply(gvr schema.GroupVersionResource, manager, text string) *unstructured.Unstructured {
	o.t.Helper()
	u := testkit.Parse(o.t, text)
	u = must.Get(o.client.Resource(gvr).Namespace(u.GetNamespace()).Apply(o.t.Context(), u.GetName(), u,
		metav1.ApplyOptions{FieldManager: manager, Force: true})).In(o.t)
	return u
}

func (o *operated) shop(namespace, name string) string {
	return string(o.apply(shops, "author", fmt.Sprintf(`{apiVersion: example.com/v1, kind: Shop, metadata: {name: %s, namespace: %s}, spec: {count: 1}}`,
		name, namespace)).GetUID())
}

// secret applies one as the operator does, with a value and more metadata.
func (o *operated) secret(operator archive.Operator, value, annotations, more string) {
	if hash := operator.Hashes[0].Annotation; hash != "" {
		annotations += `, ` + hash + `: "1"`
	}
	var labels []string
	if hash := operator.Hashes[0].Label; hash != "" {
		labels = append(labels, hash+`: "1"`)
	}
	for key, value := range operator.Labels {
		labels = append(labels, key+": "+value)
	}
	o.apply(secrets, operator.FieldManagers[0], fmt.Sprintf(`{apiVersion: v1, kind: Secret, data: {key: %s},
		metadata: {name: x, namespace: shared, annotations: {%s}, labels: {%s}%s}}`,
		value, strings.TrimPrefix(annotations, ", "), strings.Join(labels, ", "), more))
}

func (o *operated) save() string {
	o.t.Helper()
	b := &backup.Backup{Client: o.client, Operators: []archive.Operator{o.operator}, Recipients: []age.Recipient{o.key.Recipient()},
		Kinds: []backup.Selection{
			{Resource: "shops", Choices: []backup.Choice{{Namespaces: map[string]bool{"default": true}}}, Namespaced: true, HasStatus: true,
				Custom: true, GVK: shops.GroupVersion().WithKind("Shop")},
			{Resource: "secrets", Choices: []backup.Choice{{Owned: true}}, Namespaced: true, GVK: secrets.GroupVersion().WithKind("Secret")}}}
	path := filepath.Join(o.t.TempDir(), "backup")
	if _, _, err := b.Run(o.t.Context(), path); err != nil {
		o.t.Fatal(err)
	}
	return path
}

func (o *operated) restore(path, onConflict string, operators ...archive.Operator) *backup.Restore {
	o.t.Helper()
	r := &backup.Restore{Client: o.client, OnConflict: onConflict, FieldManager: "restorer", Operators: operators}
	var err error
	if r.Discovery, err = discovery.NewDiscoveryClientForConfig(o.config); err != nil {
		o.t.Fatal(err)
	}
	if r.Archive, err = archive.Open(path, []age.Identity{o.key}); err != nil {
		o.t.Fatal(err)
	}
	o.t.Cleanup(func() { _ = r.Archive.Close() })
	return r
}

func (o *operated) run(r *backup.Restore) (*backup.Plan, *backup.Result) {
	o.t.Helper()
	plan := must.Get(r.Plan(o.t.Context())).In(o.t)
	result := must.Get(r.Run(o.t.Context(), plan)).In(o.t)
	return plan, result
}

func (o *operated) remove(gvr schema.GroupVersionResource, namespace, name string) {
	o.t.Helper()
	objects := o.client.Resource(gvr).Namespace(namespace)
	_, err := objects.Patch(o.t.Context(), name, "application/merge-patch+json", []byte(`{"metadata": {"finalizers": null}}`), metav1.PatchOptions{})
	if err == nil {
		err = objects.Delete(o.t.Context(), name, metav1.DeleteOptions{})
	}
	if err != nil {
		o.t.Fatal(err)
	}
}

func (o *operated) get(gvr schema.GroupVersionResource, namespace, name string) *unstructured.Unstructured {
	o.t.Helper()
	u := must.Get(o.client.Resource(gvr).Namespace(namespace).Get(o.t.Context(), name, metav1.GetOptions{})).In(o.t)
	return u
}

// A restore takes no object from an owner that exists, unless that is the one for which it restores it.
func TestRestoreTakesNothing(t *testing.T) {
	t.Parallel()
	const aMark, bMark = `, example.com/owner: default/a/UID-a`, `, example.com/owner: default/b/UID-b`
	for _, row := range []struct {
		reason, annotations, more string // of the object by now
		gone                      string // a shop that was deleted
		copied                    bool
		refused                   string
	}{
		{reason: "its owner is restored", annotations: aMark},
		{reason: "its owner is copied, and exists", annotations: aMark, copied: true, refused: "belongs to shops.example.com default/a"},
		{reason: "its owner is copied, and gone", annotations: aMark, copied: true, gone: "a"},
		{reason: "another upstream has it", annotations: bMark, refused: "belongs to shops.example.com default/b"},
		{reason: "another upstream had it", annotations: bMark, gone: "b"},
		{reason: "nobody has it, and its owner is restored"},
		{reason: "its mark was removed, and its owner exists", copied: true, refused: "belongs to shops.example.com default/a"},
		{reason: "its mark was removed, and its owner is gone", copied: true, gone: "a"},
		{reason: "a reference to what exists", refused: "belongs to Shop shared/c",
			more: ", ownerReferences: [{apiVersion: example.com/v1, kind: Shop, name: c, uid: UID-c}]"},
		{reason: "a reference to another uid", more: ", ownerReferences: [{apiVersion: example.com/v1, kind: Shop, name: c, uid: UID-a}]"},
		{reason: "a reference to a kind that is not served",
			more: ", ownerReferences: [{apiVersion: example.com/v1, kind: Shed, name: c, uid: UID-c}]"},
		{reason: "the previous annotation", annotations: `, example.com/previous: default/b/UID-b`, refused: "belongs to shops.example.com default/b"},
		{reason: "the annotation of an operator that is not known", annotations: `, other.example.com/owner: default/b/UID-b`,
			refused: "of an operator that is not known here"},
		{reason: "an annotation that only looks alike", annotations: `, other.example.com/image: registry/image/app`},
		{reason: "a row of a database", annotations: `, example.com/owner: "/r/rows:1"`, refused: "belongs to the row /r/rows:1"},
	} {
		t.Run(row.reason, func(t *testing.T) {
			t.Parallel()
			operator := operatorWith("")
			operator.Owners = append(operator.Owners, "example.com/previous")
			o := newOperated(t, operator)
			uids := strings.NewReplacer("UID-a", o.shop("default", "a"), "UID-b", o.shop("default", "b"), "UID-c", o.shop("shared", "c"))
			o.secret(operator, "b2xk", uids.Replace(aMark), "")
			path := o.save()
			o.remove(secrets, "shared", "x")
			o.secret(operator, "bmV3", uids.Replace(row.annotations), uids.Replace(row.more))
			if row.gone != "" {
				o.remove(shops, "default", row.gone)
			}
			before := o.get(secrets, "shared", "x")
			r := o.restore(path, backup.Replace, operator)
			if row.copied {
				r.Namespaces = map[string]string{"default": "copy"}
			}
			plan, result := o.run(r)
			if row.refused == "" {
				if len(plan.Refused)+len(result.Refused) > 0 || o.get(secrets, "shared", "x").Object["data"].(map[string]any)["key"] != "b2xk" {
					t.Errorf("it was not replaced: %+v, %+v", plan, result)
				}
				return
			}
			for what, refused := range map[string][]backup.Problem{"plan": plan.Refused, "restore": result.Refused} {
				if len(refused) != 1 || !strings.Contains(refused[0].String(), row.refused) {
					t.Errorf("the %s refused %v", what, refused)
				}
			}
			if after := o.get(secrets, "shared", "x"); asJSON(t, after) != asJSON(t, before) {
				t.Errorf("it is %s, it was %s", asJSON(t, after), asJSON(t, before))
			}
		})
	}
}

// A copy of an object in a namespace in which its owner does not want it would be deleted by the operator.
func TestRestoreMovesNothingAwayFromItsOwner(t *testing.T) {
	t.Parallel()
	operator := operatorWith("")
	o := newOperated(t, operator)
	o.secret(operator, "b2xk", `, example.com/owner: default/a/`+o.shop("default", "a"), "")
	path := o.save()
	for _, namespaces := range []map[string]string{{"shared": "copy"}, {"shared": "copy", "default": "copy"}} {
		r := o.restore(path, backup.Skip, operator)
		r.Namespaces = namespaces
		plan, result := o.run(r)
		want := 2 - len(namespaces)
		if len(plan.Refused) != want || len(result.Refused) != want {
			t.Errorf("%v: refused %v, %v", namespaces, plan.Refused, result.Refused)
		}
		if want > 0 && !strings.Contains(plan.Refused[0].String(), "into namespace copy, and its owner shops.example.com default/a is not") {
			t.Errorf("it says %s", &plan.Refused[0])
		}
	}
}

// racing makes Secrets with other values for shops that are not paused, before the client has the response of their
// creation; or, late, changes those that are created.
type racing struct {
	*operated
	next  http.RoundTripper
	pause string
	late  bool
}

func (r *racing) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := r.next.RoundTrip(request)
	if err != nil || request.Method != http.MethodPost || response.StatusCode != http.StatusCreated {
		return response, err
	}
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	response.Body = io.NopCloser(bytes.NewReader(text))
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(text); err != nil {
		return nil, err
	}
	if r.late && u.GetKind() == "Secret" {
		u.Object["data"] = map[string]any{"key": "bmV3"}
		_, err = r.client.Resource(secrets).Namespace("shared").Update(request.Context(), u, metav1.UpdateOptions{FieldManager: "site"})
	} else if !r.late && u.GetKind() == "Shop" && u.GetAnnotations()[r.pause] != "true" {
		r.secret(r.operator, "bmV3", fmt.Sprintf(", %s: default/a/%s", r.operator.Owners[0], u.GetUID()), "")
	}
	return response, err
}

// A random value that a running operator made while a restore was under way is never taken for that of the backup.
func TestRestoreIsNotOvertaken(t *testing.T) {
	t.Parallel()
	renamed := operatorWith("")
	renamed.Pause = "example.com/hold"
	for _, row := range []struct {
		reason, onConflict string
		running, given     archive.Operator
		late               bool
		problem            string // empty: the value is that of the backup
	}{
		{reason: "the operator is paused", onConflict: backup.Skip, running: operatorWith(""), given: operatorWith("")},
		{reason: "it is paused by its current name", onConflict: backup.Skip, running: renamed, given: renamed},
		{reason: "skip keeps no value made meanwhile", onConflict: backup.Skip, running: renamed, given: operatorWith(""),
			problem: "it was created while it was being restored"},
		{reason: "nor does fail", onConflict: backup.Fail, running: renamed, given: operatorWith(""),
			problem: "it was created while it was being restored"},
		{reason: "replace restores the value", onConflict: backup.Replace, running: renamed, given: operatorWith("")},
		{reason: "a value that is made afterwards is found", onConflict: backup.Skip, running: renamed, given: operatorWith(""), late: true,
			problem: "data.key"},
	} {
		t.Run(row.reason, func(t *testing.T) {
			t.Parallel()
			o := newOperated(t, operatorWith(""))
			o.secret(o.operator, "b2xk", ", example.com/owner: default/a/"+o.shop("default", "a"), "")
			path := o.save()
			o.remove(secrets, "shared", "x")
			o.remove(shops, "default", "a")
			r := o.restore(path, row.onConflict, row.given)
			config := *o.config
			config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &racing{o, next, row.running.Pause, row.late} })
			var err error
			if r.Client, err = dynamic.NewForConfig(&config); err != nil {
				t.Fatal(err)
			}
			_, result := o.run(r)
			problems := slices.Concat(result.Refused, result.Changed)
			value := o.get(secrets, "shared", "x").Object["data"].(map[string]any)["key"]
			switch {
			case row.problem == "" && (len(problems) > 0 || value != "b2xk"):
				t.Errorf("the value is %v: %v", value, problems)
			case row.problem != "" && (len(problems) != 1 || !strings.Contains(problems[0].String(), row.problem)):
				t.Errorf("the problems are %v", problems)
			}
		})
	}
}

// Objects are restored with the names that the config has now: they are as the operator would have made them with these
// names.
func TestRestoreWithCurrentNames(t *testing.T) {
	t.Parallel()
	before, now := operatorWith("-1"), operatorWith("-2")
	before.FieldManagers = append(before.FieldManagers, "site-0") // that of conventions.previous, when the backup was taken
	with := func(change func(*archive.Operator)) archive.Operator {
		o := operatorWith("-2")
		change(&o)
		return o
	}
	for _, row := range []struct {
		reason string
		now    archive.Operator // with which it is restored
		wanted archive.Operator // with which it would have been made
		notes  string
	}{
		{"the same names", before, before, ""},
		{"other names", now, now, ""},
		{"another name of the operator", with(func(o *archive.Operator) { o.Name = "page" }), now, ""},
		{"the config knows the previous names", with(func(o *archive.Operator) {
			o.FieldManagers, o.Finalizers = append(o.FieldManagers, before.FieldManagers...), append(o.Finalizers, before.Finalizers[0])
			o.Owners, o.Hashes = append(o.Owners, before.Owners[0]), append(o.Hashes, before.Hashes[0])
			o.Labels, o.Pause = before.Labels, before.Pause
		}), before, ""},
		{"no finalizer any more", with(func(o *archive.Operator) { o.Finalizers = nil }),
			with(func(o *archive.Operator) { o.Finalizers = nil }), ""},
		{"the hash becomes a label", with(func(o *archive.Operator) { o.Hashes = []archive.Key{{Label: "example.com/hash-2"}} }),
			with(func(o *archive.Operator) { o.Hashes = []archive.Key{{Label: "example.com/hash-2"}} }), ""},
		{"another operator", with(func(o *archive.Operator) { o.Upstream = "sheds.example.com" }), before,
			"shops.example.com: 1 object has the finalizer example.com/site-1, and no config is known whose operator removes it: " +
				"if its controller does not run, the deletion never ends"},
	} {
		t.Run(row.reason, func(t *testing.T) {
			t.Parallel()
			o := newOperated(t, before)
			o.make(before)
			path := o.save()
			o.remove(secrets, "shared", "x")
			o.remove(shops, "default", "a")
			o.make(row.wanted)
			want := o.contents()
			o.remove(secrets, "shared", "x")
			o.remove(shops, "default", "a")
			r := o.restore(path, backup.Fail, row.now)
			plan, result := o.run(r)
			if len(result.Refused)+len(result.Changed) > 0 || strings.Join(plan.Notes, "\n") != row.notes {
				t.Errorf("%+v, %+v", plan, result)
			}
			must.Same(t, want, o.contents(), "restored")
			if _, again := o.run(o.restore(path, backup.Fail, row.now)); again.Created+again.Finished+len(again.Refused) > 0 {
				t.Errorf("again: %+v", again)
			}
		})
	}
}

// make makes what an operator has: an upstream that is paused, and a Secret.
func (o *operated) make(operator archive.Operator) {
	uid := o.shop("default", "a")
	o.apply(shops, "person", fmt.Sprintf(`{apiVersion: example.com/v1, kind: Shop, metadata: {name: a, namespace: default, annotations: {%s: "true"}}}`,
		operator.Pause))
	finalizers := append(slices.Clone(operator.Finalizers), "kubernetes.io/x")
	for _, manager := range operator.FieldManagers {
		o.apply(shops, manager, fmt.Sprintf(`{apiVersion: example.com/v1, kind: Shop, metadata: {name: a, namespace: default, finalizers: [%s]}}`,
			strings.Join(finalizers, ", ")))
	}
	o.secret(operator, "b2xk", fmt.Sprintf(", %s: default/a/%s", operator.Owners[0], uid), "")
}

// contents are the objects without what the API server sets.
func (o *operated) contents() string {
	shop, secret := o.get(shops, "default", "a"), o.get(secrets, "shared", "x")
	uid := string(shop.GetUID())
	var all []string
	for _, u := range []*unstructured.Unstructured{shop, secret} {
		var managers []string
		for _, e := range u.GetManagedFields() {
			e.Time = nil
			managers = append(managers, asJSON(o.t, e))
		}
		slices.Sort(managers)
		for _, field := range []string{"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields"} {
			unstructured.RemoveNestedField(u.Object, "metadata", field)
		}
		all = append(all, asJSON(o.t, u.Object), strings.Join(managers, "\n"))
	}
	return strings.ReplaceAll(strings.Join(all, "\n"), uid, "UID")
}
