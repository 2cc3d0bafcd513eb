package backup_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/internal/bubble"
	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/backup"
)

// A dry run into a kind whose schema has changed reports what the restore would: which objects are refused, and which
// fields are lost.
func TestDryRun(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		reason, from, to string
		refused, changed []string
	}{
		{"the same schema", "", "", nil, nil},
		{"a field is removed", "old: {type: string}\n                x:", "x:", nil, []string{
			`shops.example.com default/a: .spec.old is lost: the API server drops "o"`,
			`shops.example.com default/b: .spec.old is lost: the API server drops "o"`}},
		{"a field gets a maximum", "count: {type: integer}", "count: {type: integer, maximum: 1}",
			[]string{`shops.example.com default/b: Shop.example.com "b" is invalid: spec.count: Invalid value: 2: spec.count in body should be ` +
				`less than or equal to 1`}, nil},
		{"a field gets a default", "tls: {type: object,", "tls: {type: object, default: {},", nil, []string{
			"shops.example.com default/a: .spec.tls: the API server adds {}", "shops.example.com default/b: .spec.tls: the API server adds {}"}},
		{"a field of the status is removed", ", old: {type: string}}", "}", nil, []string{
			`shops.example.com default/a: .status.old is lost: the API server drops "o"`,
			`shops.example.com default/b: .status.old is lost: the API server drops "o"`}},
		{"a field of the status gets a limit", "phase: {type: string}", "phase: {type: string, maxLength: 1}", []string{
			`shops.example.com default/b: restoring status and managedFields: `}, nil},
	} {
		m := newInMemory(t, shopDefinition)
		for i, name := range []string{"a", "b"} {
			m.create(name, map[string]any{"count": int64(i + 1), "old": "o"})
			m.status(name, fmt.Sprintf(`{"status": {"phase": %q, "old": "o"}}`, strings.Repeat("x", i+1)))
		}
		path := m.save()
		must.Do(t, m.cluster.Define(testkit.Parse(t, strings.Replace(shopDefinition, row.from, row.to, 1))))
		for _, name := range []string{"a", "b"} {
			must.Do(t, m.client.Resource(shops).Namespace("default").Delete(t.Context(), name, metav1.DeleteOptions{}))
		}
		m.putNamespace("default")
		r := m.restore(path, backup.Fail)
		r.DryRun = true
		plan := must.Get(r.Plan(t.Context())).In(t)
		dry, err := r.Run(t.Context(), plan)
		if err != nil || len(m.cluster.Objects(shops)) != 0 {
			t.Fatalf("%s: %d objects were written: %v", row.reason, len(m.cluster.Objects(shops)), err)
		}
		r.DryRun = false
		made := must.Get(r.Run(t.Context(), plan)).In(t)
		for what, result := range map[string]*backup.Result{"dry": dry, "real": made} {
			if fmt.Sprint(problems(result.Changed)) != fmt.Sprint(row.changed) || !alike(problems(result.Refused), row.refused) {
				t.Errorf("%s, %s run: refused %q, changed %q", row.reason, what, problems(result.Refused), problems(result.Changed))
			}
		}
		if dry.Created != made.Created || dry.Finished != made.Finished || len(dry.Refused) != len(made.Refused) || len(dry.Unknown) > 0 {
			t.Errorf("%s: the dry run is %+v, the restore %+v", row.reason, dry, made)
		}
	}
}

func problems(list []backup.Problem) (texts []string) {
	for _, p := range list {
		texts = append(texts, p.String())
	}
	return texts
}

// alike reports whether texts begin as wanted.
func alike(got, want []string) bool {
	for i := range got {
		if len(got) != len(want) || !strings.HasPrefix(got[i], want[i]) {
			return false
		}
	}
	return len(got) == len(want)
}

func (m *inMemory) status(name, patch string) {
	m.t.Helper()
	must.Get(m.client.Resource(shops).Namespace("default").
		Patch(m.t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "operator"}, "status")).In(m.t)
}

func (m *inMemory) putNamespace(name string) {
	m.t.Helper()
	must.Get(m.cluster.Put(testkit.Parse(m.t, "{apiVersion: v1, kind: Namespace, metadata: {name: "+name+"}}"))).In(m.t)
}

// Of objects in a namespace that does not exist a dry run cannot say anything, and says so.
func TestDryRunUnknown(t *testing.T) {
	t.Parallel()
	m := newInMemory(t, shopDefinition)
	m.create("a", map[string]any{"old": "o"})
	r := m.restore(m.save(), backup.Fail)
	r.Namespaces, r.DryRun = map[string]string{"default": "other"}, true
	plan := must.Get(r.Plan(t.Context())).In(t)
	result, err := r.Run(t.Context(), plan)
	if err != nil || result.Created > 0 || fmt.Sprint(result.Unknown) != "[{shops.example.com Namespace other does not exist yet 1}]" {
		t.Errorf("the result is %+v: %v", result, err)
	}
}

// What would replace an object is asked of the API server, too.
func TestDryRunReplaces(t *testing.T) {
	t.Parallel()
	m := newInMemory(t, shopDefinition)
	for i, name := range []string{"a", "b"} {
		m.create(name, map[string]any{"count": int64(i + 1), "old": "o"})
	}
	path := m.save()
	limited := strings.NewReplacer("old: {type: string}\n                x:", "x:",
		"count: {type: integer}", "count: {type: integer, maximum: 1}")
	must.Do(t, m.cluster.Define(testkit.Parse(t, limited.Replace(shopDefinition))))
	for _, name := range []string{"a", "b"} {
		m.update(name, map[string]any{"count": int64(0)})
	}
	r := m.restore(path, backup.Replace)
	r.DryRun = true
	plan := must.Get(r.Plan(t.Context())).In(t)
	result, err := r.Run(t.Context(), plan)
	if err != nil || result.Replaced != 1 || len(result.Refused) != 1 || len(result.Changed) != 1 ||
		!strings.Contains(result.Changed[0].String(), "default/a: .spec.old is lost") {
		t.Errorf("the result is %+v: %v", result, err)
	}
	must.Same(t, `{"count":0}`, m.spec("a"), "the object")
}

// Into a changed schema, a dry run says what the restore does: the API server refuses one object, and drops a field of
// the others.
func TestDryRunIntoAnotherSchema(t *testing.T) {
	t.Parallel()
	bubble.Serve(t)
	w := &world{t: t, group: testkit.Unique(t) + ".example.com", ns: testkit.Namespace(t)}
	definition := strings.NewReplacer("group: example.com", "group: "+w.group, "shops.example.com", "shops."+w.group).Replace(shopDefinition)
	testkit.InstallCRDs(t, definition)
	gvr := schema.GroupVersionResource{Group: w.group, Version: "v1", Resource: "shops"}
	for i, name := range []string{"a", "b", "c"} {
		w.apply(gvr, w.ns, map[string]any{"apiVersion": w.group + "/v1", "kind": "Shop", "metadata": map[string]any{"name": name},
			"spec": map[string]any{"count": int64(i), "old": "o", "tls": map[string]any{}}})
		testkit.Patch(t, gvr, w.ns, name, "operator", `{"status": {"phase": "x", "old": "o"}}`, "status")
	}
	b := w.backup(testkit.Config(t))
	b.Kinds = []backup.Selection{{GVK: gvr.GroupVersion().WithKind("Shop"), Resource: "shops", Namespaced: true, HasStatus: true, Custom: true,
		Namespaces: []string{w.ns}, Choices: []backup.Choice{{}}}}
	path := filepath.Join(t.TempDir(), "backup")
	if _, _, err := b.Run(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b", "c"} {
		testkit.Delete(t, gvr, w.ns, name)
	}
	testkit.Apply(t, "", strings.NewReplacer("old: {type: string}\n                x:", "x:", ", old: {type: string}}", "}",
		"count: {type: integer}", "count: {type: integer, maximum: 1}").Replace(definition))
	testkit.Eventually(t, patience, func() (bool, string) {
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": w.group + "/v1", "kind": "Shop",
			"metadata": map[string]any{"name": "probe"}, "spec": map[string]any{"count": int64(2)}}}
		_, err := testkit.Dynamic(t).Resource(gvr).Namespace(w.ns).Create(t.Context(), u, metav1.CreateOptions{DryRun: []string{"All"}})
		return err != nil, "the schema is not in force yet"
	})
	dry := w.restore(testkit.Config(t), path, backup.Fail)
	dry.DryRun = true
	_, would, err := run(t.Context(), dry)
	if err != nil || len(testkit.List(t, gvr, w.ns, "")) > 0 {
		t.Fatalf("the dry run: %+v: %v", would, err)
	}
	_, result, err := run(t.Context(), w.restore(testkit.Config(t), path, backup.Fail))
	if err != nil {
		t.Fatal(err)
	}
	const lost = " is lost: the API server drops \"o\""
	for what, r := range map[string]*backup.Result{"dry": would, "real": result} {
		// the restore reports the status of all objects at the end
		text := fmt.Sprint(r.Changed)
		if r.Created != 2 || r.Finished != 2 || len(r.Refused) != 1 || !strings.Contains(r.Refused[0].String(), "spec.count") ||
			len(r.Changed) != 4 || strings.Count(text, ".spec.old"+lost) != 2 || strings.Count(text, ".status.old"+lost) != 2 {
			t.Errorf("the %s run: %+v", what, r)
		}
	}
}
