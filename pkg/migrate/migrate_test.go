package migrate_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/corollary-dev/corollary/internal/bubble"
	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/migrate"
)

const patience = time.Minute

var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// kind is a custom kind of one test.
type kind struct {
	t     *testing.T
	group string
	ns    string
}

// define registers a kind; versions are NAME, NAME! for the stored one, and NAME- for one that is not served.
func define(t *testing.T, versions ...string) *kind {
	t.Helper()
	k := &kind{t: t, group: testkit.Unique(t) + ".example.com", ns: testkit.Namespace(t)}
	testkit.InstallCRDs(t, k.crd(versions...))
	return k
}

func (k *kind) name() string { return "things." + k.group }

func (k *kind) crd(versions ...string) string {
	text := "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: " + k.name() + "}\nspec:\n" +
		"  group: " + k.group +
		"\n  scope: Namespaced\n  names: {plural: things, singular: thing, kind: Thing, listKind: ThingList}\n  versions:\n"
	for _, v := range versions {
		text += fmt.Sprintf(
			"    - {name: %s, served: %t, storage: %t, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, "+
				"properties: {a: {type: string}, b: {type: string}, o: {type: object, properties: {p: {type: string}}}}}}}}}\n",
			strings.Trim(v, "!-"),
			!strings.HasSuffix(v, "-"),
			strings.HasSuffix(v, "!"),
		)
	}
	return text
}

// change changes the versions, and waits until the API server goes by that.
func (k *kind) change(served string, versions ...string) {
	k.t.Helper()
	testkit.Apply(k.t, "", k.crd(versions...))
	testkit.Eventually(k.t, patience, func() (bool, string) {
		_, err := testkit.Dynamic(k.t).Resource(k.resource(served)).Namespace(k.ns).List(k.t.Context(), metav1.ListOptions{})
		return err == nil, fmt.Sprint(err)
	})
}

func (k *kind) resource(version string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: k.group, Version: version, Resource: "things"}
}

// apply applies an object as a manager does, which goes on to use one version.
func (k *kind) apply(version, manager, name, field, value string) error {
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": k.group + "/" + version, "kind": "Thing", "metadata": map[string]any{"name": name}, "spec": map[string]any{field: value},
	}}
	_, err := testkit.Dynamic(
		k.t,
	).Resource(
		k.resource(version),
	).Namespace(
		k.ns,
	).Apply(
		k.t.Context(),
		name,
		u,
		metav1.ApplyOptions{FieldManager: manager},
	)
	return err
}

func (k *kind) stored() []string {
	k.t.Helper()
	versions, _, _ := unstructured.NestedStringSlice(testkit.Get(k.t, definitions, "", k.name()).Object, "status", "storedVersions")
	return versions
}

func (k *kind) migration(client dynamic.Interface, leaving ...string) *migrate.Migration {
	return &migrate.Migration{Client: client, CRD: k.name(), FieldManager: "migrator", Leaving: leaving}
}

// An old version is migrated away and removed, and whoever applied with it goes on with the new one.
func TestMigrate(t *testing.T) {
	bubble.Run(t, nil, func(t *testing.T) {
		k := define(t, "v1beta1!", "v1")
		for i := range 30 {
			name := fmt.Sprintf("t%d", i)
			if err := errors.Join(k.apply("v1beta1", "old", name, "a", "1"), k.apply("v1", "new", name, "b", "1")); err != nil {
				t.Fatal(err)
			}
		}
		k.change("v1", "v1beta1", "v1!")
		if got := fmt.Sprint(k.stored()); got != "[v1beta1 v1]" {
			t.Fatalf("stored are %s", got)
		}
		m := k.migration(testkit.Dynamic(t), "v1beta1")
		p, err := m.Plan(t.Context())
		if err != nil || p.Stored != "v1" || fmt.Sprint(p.Before) != "[v1beta1]" || p.Objects != 30 {
			t.Fatalf("the plan is %+v: %v", p, err)
		}
		r, err := m.Run(t.Context(), p)
		if err != nil || !r.Trimmed || r.Rewritten != 30 || r.Fixed != 30 || len(r.Refusals) > 0 {
			t.Fatalf("the result is %+v: %v", r, err)
		}
		if got := fmt.Sprint(k.stored()); got != "[v1]" {
			t.Fatalf("stored are %s", got)
		}
		k.change("v1", "v1!")
		for i := range 30 {
			name := fmt.Sprintf("t%d", i)
			if err := errors.Join(k.apply("v1", "old", name, "a", "2"), k.apply("v1", "new", name, "b", "2")); err != nil {
				t.Fatalf("an apply after the old version is gone: %v", err)
			}
			managers := map[string]string{}
			for _, entry := range testkit.Get(t, k.resource("v1"), k.ns, name).GetManagedFields() {
				managers[entry.Manager] = entry.APIVersion + " " + entry.FieldsV1.GetRawString()
			}
			if len(managers) != 2 || !strings.Contains(managers["old"], `"f:a"`) || !strings.Contains(managers["new"], `"f:b"`) {
				t.Fatalf("managers are %v", managers)
			}
		}
	})
}

// Killed at any request, a migration that is run again finishes, and an old version is never named as gone too early.
func TestMigrateInterrupted(t *testing.T) {
	bubble.Run(t, nil, func(t *testing.T) {
		k := define(t, "v1beta1!", "v1")
		for i := range 5 {
			if err := k.apply("v1beta1", "old", fmt.Sprintf("t%d", i), "a", "1"); err != nil {
				t.Fatal(err)
			}
		}
		k.change("v1", "v1beta1", "v1!")
		for n := 0; ; n++ {
			config := testkit.Config(t)
			sent := 0
			ctx, cancel := context.WithCancel(t.Context())
			config.Wrap(func(next http.RoundTripper) http.RoundTripper {
				return tripper(func(r *http.Request) (*http.Response, error) {
					if sent++; sent > n {
						cancel()
						return nil, errors.New("killed")
					}
					return next.RoundTrip(r)
				})
			})
			client, err := dynamic.NewForConfig(config)
			if err != nil {
				t.Fatal(err)
			}
			m := k.migration(client, "v1beta1")
			p, err := m.Plan(ctx)
			var r *migrate.Result
			if err == nil {
				r, err = m.Run(ctx, p)
			}
			cancel()
			if err == nil && r.Trimmed {
				t.Logf("done after %d requests", n)
				break
			}
			if got := fmt.Sprint(k.stored()); got != "[v1beta1 v1]" && got != "[v1]" {
				t.Fatalf("after %d requests stored are %s", n, got)
			}
			if n > 100 {
				t.Fatal("it does not end")
			}
		}
	})
}

type tripper func(*http.Request) (*http.Response, error)

func (f tripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// An object that is refused does not stop the others, and keeps the old version named.
func TestMigrateRefused(t *testing.T) {
	bubble.Run(t, nil, func(t *testing.T) {
		k := define(t, "v1beta1!", "v1")
		for _, name := range []string{"a", "frozen", "z"} {
			if err := k.apply("v1", "old", name, "a", "1"); err != nil {
				t.Fatal(err)
			}
		}
		k.change("v1", "v1beta1", "v1!")
		faults := testkit.NewFaults()
		frozen := faults.Answer(http.StatusUnprocessableEntity, func(r *http.Request) bool {
			return r.Method == http.MethodPatch && path.Base(r.URL.Path) == "frozen"
		})
		client, err := dynamic.NewForConfig(faults.Wrap(testkit.Config(t)))
		if err != nil {
			t.Fatal(err)
		}
		m := k.migration(client)
		p, err := m.Plan(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		r, err := m.Run(t.Context(), p)
		if err != nil || r.Trimmed || len(r.Refusals) != 1 || r.Refusals[0].Object.Name != "frozen" || r.Rewritten != 2 {
			t.Fatalf("the result is %+v: %v", r, err)
		}
		if got := fmt.Sprint(k.stored()); got != "[v1beta1 v1]" {
			t.Errorf("stored are %s", got)
		}
		frozen.Off()
		if r, err := m.Run(t.Context(), p); err != nil || !r.Trimmed {
			t.Errorf("again: %+v: %v", r, err)
		}
	})
}

// Objects that lack a field get it, others keep theirs; where it cannot be computed for one, nothing is written.
func TestFill(t *testing.T) {
	bubble.Run(t, nil, func(t *testing.T) {
		k := define(t, "v1!")
		for _, object := range [][3]string{{"lacking", "a", "1"}, {"having", "b", "mine"}} {
			if err := k.apply("v1", "owner", object[0], object[1], object[2]); err != nil {
				t.Fatal(err)
			}
		}
		specs := func() string {
			return fmt.Sprint(
				testkit.Get(t, k.resource("v1"), k.ns, "lacking").Object["spec"],
				testkit.Get(t, k.resource("v1"), k.ns, "having").Object["spec"],
			)
		}
		for _, row := range []struct{ reason, fill, want string }{
			{"an object lacks what is read", ".spec.b=self.spec.other", "self.spec has no field other"},
			{"the expression fails for one object", ".spec.b=string(1 / (int(self.spec.a) - 1))", "/lacking: .spec.b: "},
			{"the version does not have the field", ".spec.c='x'", "version v1 does not have .spec.c"},
			{"it is another subresource", ".status.b='x'", "cannot be filled in"},
			{"the path goes through a string", ".spec.a.b='x'", "version v1 does not have .spec.a.b"},
			{"a number in the place of a text", ".spec.b=size(self.spec.a)", "a value of type integer, and .spec.b is of type string"},
			{"a number whose type nobody knows before", ".spec.b=dyn(size(self.spec.a))", "/lacking: spec.b: Invalid value"},
			{"an object with a field too many", ".spec.o={'p': 'x', 'q': 'y'}", "version v1 does not have spec.o.q"},
			{"no expression", ".spec.b", "it must be PATH=EXPRESSION"},
		} {
			m := k.migration(testkit.Dynamic(t))
			m.Fill = []string{row.fill}
			if _, err := m.Plan(t.Context()); err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("%s: the error is %v", row.reason, err)
			}
		}
		if got := specs(); got != "map[a:1] map[b:mine]" {
			t.Fatalf("the objects are %s", got)
		}
		m := k.migration(testkit.Dynamic(t))
		m.Fill = []string{".spec.b=self.spec.a + '!'"}
		p, err := m.Plan(t.Context())
		if err != nil || p.Lacking != 1 {
			t.Fatalf("the plan is %+v: %v", p, err)
		}
		if r, err := m.Run(t.Context(), p); err != nil || r.Filled != 1 || r.Rewritten != 2 {
			t.Fatalf("the result is %+v: %v", r, err)
		}
		if got := specs(); got != "map[a:1 b:1!] map[b:mine]" {
			t.Errorf("the objects are %s", got)
		}
	})
}

// A definition that changes meanwhile ends a migration soon: what its schema does not declare any more, each further write would drop.
func TestMigrateNoticesAChange(t *testing.T) {
	bubble.Run(t, nil, func(t *testing.T) {
		k := define(t, "v1beta1!", "v1")
		for i := range 20 {
			if err := k.apply("v1beta1", "old", fmt.Sprintf("t%d", i), "a", "1"); err != nil {
				t.Fatal(err)
			}
		}
		k.change("v1", "v1beta1", "v1!")
		m := k.migration(testkit.Dynamic(t))
		m.Rate = 2
		p, err := m.Plan(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		m.Progress = func(done migrate.Progress) {
			if done.Done == 2 {
				k.change("v1", "v1beta1", "v1!", "v2")
			}
		}
		r, err := m.Run(t.Context(), p)
		if !errors.Is(err, migrate.ErrChanged) || r.Rewritten >= 20 || r.Trimmed {
			t.Errorf("%d objects were rewritten: %v", r.Rewritten, err)
		}
	})
}

// A version that the definition has no more is named by managedFields still: nobody ran a migration before it was removed.
func TestMigrateRemovedVersion(t *testing.T) {
	bubble.Run(t, nil, func(t *testing.T) {
		k := define(t, "v1beta1!", "v1", "v2")
		k.fill(3)
		k.change("v1", "v1beta1", "v1!", "v2")
		for i := range 3 { // so they are stored in v1
			testkit.Update(t, k.resource("v1"), k.ns, fmt.Sprint("t", i), func(u *unstructured.Unstructured) {
				u.SetLabels(map[string]string{"touched": "true"})
			})
		}
		_, err := testkit.Dynamic(t).Resource(definitions).Patch(t.Context(), k.name(), types.MergePatchType,
			[]byte(`{"status": {"storedVersions": ["v1"]}}`), metav1.PatchOptions{}, "status")
		if err != nil {
			t.Fatal(err)
		}
		k.change("v1", "v1", "v2!")
		m := k.migration(testkit.Dynamic(t))
		p, err := m.Plan(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if r, err := m.Run(t.Context(), p); err != nil || !r.Trimmed || r.Fixed != 3 {
			t.Errorf("the result is %+v: %v", r, err)
		}
		if err := k.apply("v2", "somebody", "t0", "a", "y"); err != nil {
			t.Errorf("who has applied in the version that is gone cannot go on: %v", err)
		}
	})
}

// However many objects the API server refuses, a result names a bounded number of them.
func TestMigrateManyRefused(t *testing.T) {
	bubble.Run(t, nil, func(t *testing.T) {
		const objects = 120
		k := define(t, "v1beta1!", "v1")
		k.fill(objects)
		k.change("v1", "v1beta1", "v1!")
		faults := testkit.NewFaults()
		faults.Answer(http.StatusForbidden, testkit.On("PATCH", "things"))
		client, err := dynamic.NewForConfig(faults.Wrap(testkit.Config(t)))
		if err != nil {
			t.Fatal(err)
		}
		m := k.migration(client)
		p, err := m.Plan(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if r, err := m.Run(t.Context(), p); err != nil || r.Refused != objects || len(r.Refusals) != 100 || r.Trimmed {
			t.Errorf("%d were refused, of which %d are named: %v", r.Refused, len(r.Refusals), err)
		}
	})
}

// Objects that the API server fails for by themselves stop nothing, however many of them come in a row: neighbors by name, such as those
// of one namespace with a webhook, are not mistaken for a server that fails for every object.
func TestMigrateNeighborsFail(t *testing.T) {
	bubble.Run(t, nil, func(t *testing.T) {
		const objects = 120
		k := define(t, "v1beta1!", "v1")
		k.fill(objects)
		k.change("v1", "v1beta1", "v1!")
		faults := testkit.NewFaults()
		faults.Answer(http.StatusInternalServerError, func(r *http.Request) bool {
			return r.Method == http.MethodPatch && strings.HasPrefix(path.Base(r.URL.Path), "t1")
		})
		client, err := dynamic.NewForConfig(faults.Wrap(testkit.Config(t)))
		if err != nil {
			t.Fatal(err)
		}
		m := k.migration(client)
		p, err := m.Plan(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		const failing = 31 // t1, t10 to t19, t100 to t119
		if r, err := m.Run(t.Context(), p); err != nil || r.Refused != failing || r.Rewritten != objects-failing {
			t.Errorf("the result is %+v: %v", r, err)
		}
	})
}

// An object for which a webhook fails while one of its replicas is replaced is tried again.
func TestMigratePassingFailure(t *testing.T) {
	bubble.Run(t, nil, func(t *testing.T) {
		k := define(t, "v1beta1!", "v1")
		k.fill(6)
		k.change("v1", "v1beta1", "v1!")
		faults, failures := testkit.NewFaults(), 0
		faults.Answer(http.StatusInternalServerError, func(r *http.Request) bool {
			if r.Method != http.MethodPatch || path.Base(r.URL.Path) != "t1" {
				return false
			}
			failures++
			return failures <= 2
		})
		client, err := dynamic.NewForConfig(faults.Wrap(testkit.Config(t)))
		if err != nil {
			t.Fatal(err)
		}
		m := k.migration(client)
		p, err := m.Plan(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if r, err := m.Run(t.Context(), p); err != nil || !r.Trimmed || r.Refused > 0 || len(r.Refusals) > 0 || r.Rewritten != 6 || r.Done != 6 {
			t.Errorf("the result is %+v: %v", r, err)
		}
	})
}

// A migration does not begin before the change that made it necessary has had time to reach every API server.
func TestMigrateSettles(t *testing.T) {
	bubble.Run(t, nil, func(t *testing.T) {
		k := define(t, "v1beta1!", "v1")
		k.fill(1)
		k.change("v1", "v1beta1", "v1!")
		m := k.migration(testkit.Dynamic(t))
		m.Settle = time.Hour
		p, err := m.Plan(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if wait := m.Unsettled(p); wait < 59*time.Minute || wait > time.Hour {
			t.Errorf("it waits %s", wait)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if r, err := m.Run(ctx, p); !errors.Is(err, context.DeadlineExceeded) || r.Done > 0 {
			t.Errorf("the result is %+v: %v", r, err)
		}
		m.Settle = time.Nanosecond
		if r, err := m.Run(t.Context(), p); err != nil || !r.Trimmed {
			t.Errorf("the result is %+v: %v", r, err)
		}
	})
}
