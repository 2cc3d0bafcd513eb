package migrate_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/corollary-dev/corollary/internal/bubble"
	"github.com/corollary-dev/corollary/internal/must"
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

// changed is a kind with n objects that are stored in v1beta1, which is not the stored version any more.
func changed(t *testing.T, n int) *kind {
	t.Helper()
	k := define(t, "v1beta1!", "v1")
	k.fill(n)
	k.change("v1", "v1beta1", "v1!")
	return k
}

// fill stores objects t0, t1 and so on, with the field a, applied as v1beta1.
func (k *kind) fill(n int) {
	k.t.Helper()
	for i := range n {
		k.apply("v1beta1", "somebody", fmt.Sprint("t", i), "a", "x")
	}
}

func (k *kind) name() string { return "things." + k.group }

func (k *kind) crd(versions ...string) string {
	text := "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: " + k.name() + "}\nspec:\n" +
		"  group: " + k.group + "\n  scope: Namespaced\n" +
		"  names: {plural: things, singular: thing, kind: Thing, listKind: ThingList}\n  versions:\n"
	for _, v := range versions {
		text += fmt.Sprintf(
			"    - {name: %s, served: %t, storage: %t, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, "+
				"properties: {a: {type: string}, b: {type: string}, o: {type: object, properties: {p: {type: string}}}}}}}}}\n",
			strings.Trim(v, "!-"), !strings.HasSuffix(v, "-"), strings.HasSuffix(v, "!"))
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

func (k *kind) get(name string) *unstructured.Unstructured {
	k.t.Helper()
	return testkit.Get(k.t, k.resource("v1"), k.ns, name)
}

// apply applies an object as a manager does, which goes on to use one version.
func (k *kind) apply(version, manager, name, field, value string) {
	k.t.Helper()
	if err := k.tryApply(version, manager, name, field, value); err != nil {
		k.t.Fatalf("%s cannot apply %s as %s: %v", manager, name, version, err)
	}
}

func (k *kind) tryApply(version, manager, name, field, value string) error {
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": k.group + "/" + version, "kind": "Thing", "metadata": map[string]any{"name": name}, "spec": map[string]any{field: value},
	}}
	things := testkit.Dynamic(k.t).Resource(k.resource(version)).Namespace(k.ns)
	_, err := things.Apply(k.t.Context(), name, u, metav1.ApplyOptions{FieldManager: manager})
	return err
}

func (k *kind) stored() []string {
	k.t.Helper()
	versions, _, _ := unstructured.NestedStringSlice(testkit.Get(k.t, definitions, "", k.name()).Object, "status", "storedVersions")
	return versions
}

func (k *kind) wantStored(want ...string) {
	k.t.Helper()
	if have := k.stored(); !slices.Equal(have, want) {
		k.t.Errorf("status.storedVersions is %v, not %v", have, want)
	}
}

func (k *kind) migration(client dynamic.Interface, leaving ...string) *migrate.Migration {
	return &migrate.Migration{Client: client, CRD: k.name(), FieldManager: "migrator", Leaving: leaving}
}

// run plans a migration and runs it.
func run(t *testing.T, m *migrate.Migration) (*migrate.Plan, *migrate.Result, error) {
	t.Helper()
	p := must.Get(m.Plan(t.Context())).In(t)
	r, err := m.Run(t.Context(), p)
	return p, r, err
}

// faulty is a client whose requests are answered with a status where match is true.
func faulty(t *testing.T, code int, match func(*http.Request) bool) (dynamic.Interface, *testkit.Fault) {
	t.Helper()
	faults := testkit.NewFaults()
	fault := faults.Answer(code, match)
	client := must.Get(dynamic.NewForConfig(faults.Wrap(testkit.Config(t)))).In(t)
	return client, fault
}

// before is a client before each of whose requests to patch NAME or NAME/status something is done.
func before(t *testing.T, do func(path string)) dynamic.Interface {
	t.Helper()
	client, _ := faulty(t, http.StatusTeapot, func(r *http.Request) bool {
		if r.Method == http.MethodPatch {
			do(r.URL.Path)
		}
		return false
	})
	return client
}

// An old version is migrated away and removed, and whoever applied with it goes on with the new one.
func TestMigrate(t *testing.T) {
	bubble.Run(t, nil, func(t *testing.T) {
		k := changed(t, 30)
		for i := range 30 {
			k.apply("v1", "new", fmt.Sprint("t", i), "b", "1")
		}
		k.wantStored("v1beta1", "v1")
		p, r, err := run(t, k.migration(testkit.Dynamic(t), "v1beta1"))
		if p.Stored != "v1" || fmt.Sprint(p.Before) != "[v1beta1]" || p.Objects != 30 {
			t.Errorf("the plan is %+v", p)
		}
		if err != nil || !r.Trimmed || r.Rewritten != 30 || r.Fixed != 30 || len(r.Refusals) > 0 {
			t.Fatalf("the result is %+v: %v", r, err)
		}
		k.wantStored("v1")
		k.change("v1", "v1!")
		for i := range 30 {
			name := fmt.Sprint("t", i)
			k.apply("v1", "somebody", name, "a", "2")
			k.apply("v1", "new", name, "b", "2")
			managers := map[string]string{}
			for _, entry := range k.get(name).GetManagedFields() {
				managers[entry.Manager] = entry.APIVersion + " " + entry.FieldsV1.GetRawString()
			}
			if len(managers) != 2 || !strings.Contains(managers["somebody"], `"f:a"`) || !strings.Contains(managers["new"], `"f:b"`) {
				t.Fatalf("managers are %v", managers)
			}
		}
	})
}

// Killed at any request, a migration that is run again finishes, and an old version is never named as gone too early.
func TestMigrateInterrupted(t *testing.T) {
	bubble.Run(t, nil, func(t *testing.T) {
		k := changed(t, 5)
		for n := 0; ; n++ {
			sent := 0
			ctx, cancel := context.WithCancel(t.Context())
			client, _ := faulty(t, http.StatusTeapot, func(*http.Request) bool {
				if sent++; sent > n {
					cancel()
				}
				return sent > n
			})
			m := k.migration(client, "v1beta1")
			p, err := m.Plan(ctx)
			var r *migrate.Result
			if err == nil {
				r, err = m.Run(ctx, p)
			}
			cancel()
			if err == nil && r.Trimmed {
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

// Objects for which the API server fails do not stop the others, and keep the old version named; run again later, the
// migration finishes.
func TestMigrateRefused(t *testing.T) {
	for _, row := range []struct {
		reason         string
		objects, code  int
		prefix         string // of the objects that fail
		times          int    // for the first requests only; 0 for all
		refused, named int
	}{
		{"one object is refused", 3, http.StatusUnprocessableEntity, "t1", 0, 1, 1},
		{"however many are refused, a result names a bounded number", 120, http.StatusForbidden, "t", 0, 120, 100},
		{"the server fails for neighbors by name, and is not down", 120, http.StatusInternalServerError, "t1", 0, 31, 31},
		{"a replica of a webhook is replaced: the object is tried again", 6, http.StatusInternalServerError, "t1", 2, 0, 0},
	} {
		t.Run(row.reason, func(t *testing.T) {
			bubble.Run(t, nil, func(t *testing.T) {
				k, failures := changed(t, row.objects), 0
				client, fault := faulty(t, row.code, func(r *http.Request) bool {
					if r.Method != http.MethodPatch || !strings.HasPrefix(path.Base(r.URL.Path), row.prefix) {
						return false
					}
					failures++
					return row.times == 0 || failures <= row.times
				})
				m := k.migration(client)
				p, r, err := run(t, m)
				if err != nil || r.Refused != row.refused || len(r.Refusals) != row.named || r.Trimmed != (row.refused == 0) ||
					r.Rewritten != row.objects-row.refused || r.Done != row.objects {
					t.Fatalf("%s: the result is %+v: %v", row.reason, r, err)
				}
				for _, refusal := range r.Refusals {
					if !strings.HasPrefix(refusal.Object.Name, row.prefix) {
						t.Errorf("%s: %s was refused", row.reason, refusal.Object)
					}
				}
				if row.refused > 0 {
					k.wantStored("v1beta1", "v1")
				}
				fault.Off()
				if r, err := m.Run(t.Context(), p); err != nil || !r.Trimmed {
					t.Errorf("%s: again: %+v: %v", row.reason, r, err)
				}
			})
		})
	}
}

// Objects that lack a field get it, others keep theirs; where it cannot be computed for one, nothing is written.
func TestFill(t *testing.T) {
	bubble.Run(t, nil, func(t *testing.T) {
		k := define(t, "v1!")
		for _, object := range [][3]string{{"lacking", "a", "1"}, {"having", "b", "mine"}} {
			k.apply("v1", "owner", object[0], object[1], object[2])
		}
		specs := func() string {
			return fmt.Sprint(k.get("lacking").Object["spec"], k.get("having").Object["spec"])
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
		if p, r, err := run(t, m); err != nil || p.Lacking != 1 || r.Filled != 1 || r.Rewritten != 2 {
			t.Fatalf("of the plan %+v, the result is %+v: %v", p, r, err)
		}
		must.Same(t, "map[a:1 b:1!] map[b:mine]", specs(), "the objects")
	})
}

// A definition that changes meanwhile ends a migration soon: what its schema does not declare any more, each further
// write would drop.
func TestMigrateNoticesAChange(t *testing.T) {
	bubble.Run(t, nil, func(t *testing.T) {
		k := changed(t, 20)
		m := k.migration(testkit.Dynamic(t))
		m.Rate = 2
		m.Progress = func(done migrate.Progress) {
			if done.Done == 2 {
				k.change("v1", "v1beta1", "v1!", "v2")
			}
		}
		if _, r, err := run(t, m); !errors.Is(err, migrate.ErrChanged) || r.Rewritten >= 20 || r.Trimmed {
			t.Errorf("%d objects were rewritten: %v", r.Rewritten, err)
		}
	})
}

// A version that the definition has no more is named by managedFields still: nobody ran a migration before it was
// removed.
func TestMigrateRemovedVersion(t *testing.T) {
	bubble.Run(t, nil, func(t *testing.T) {
		k := changed(t, 3)
		for i := range 3 { // so they are stored in v1
			testkit.Update(t, k.resource("v1"), k.ns, fmt.Sprint("t", i), func(u *unstructured.Unstructured) {
				u.SetLabels(map[string]string{"touched": "true"})
			})
		}
		must.Get(testkit.Dynamic(t).Resource(definitions).Patch(t.Context(), k.name(), types.MergePatchType,
			[]byte(`{"status": {"storedVersions": ["v1"]}}`), metav1.PatchOptions{}, "status")).In(t)
		k.change("v2", "v1", "v2!")
		if _, r, err := run(t, k.migration(testkit.Dynamic(t))); err != nil || !r.Trimmed || r.Fixed != 3 {
			t.Errorf("the result is %+v: %v", r, err)
		}
		k.apply("v2", "somebody", "t0", "a", "y")
	})
}

// A migration does not begin before the change that made it necessary has had time to reach every API server.
func TestMigrateSettles(t *testing.T) {
	bubble.Run(t, nil, func(t *testing.T) {
		m := changed(t, 1).migration(testkit.Dynamic(t))
		m.Settle = time.Hour
		p := must.Get(m.Plan(t.Context())).In(t)
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

// A field manager that has applied fields of the objects would remove them by an empty apply: it is refused.
func TestManagerOfTheObjects(t *testing.T) {
	bubble.Run(t, nil, func(t *testing.T) {
		k := changed(t, 2)
		m := k.migration(testkit.Dynamic(t))
		m.FieldManager = "somebody"
		_, r, err := run(t, m)
		if err != nil || len(r.Refusals) != 2 || !strings.Contains(r.Refusals[0].Err.Error(), "choose a field manager of its own") {
			t.Errorf("%+v: %v", r, err)
		}
		if u := k.get("t0"); u.Object["spec"] == nil {
			t.Errorf("its fields are gone: %v", u)
		}
	})
}
