package backup_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/klauspost/compress/zstd"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/backup"
	"github.com/corollary-dev/corollary/pkg/backup/archive"
)

// Everything is deleted, the kind too, and comes back as it was: status, owners and managedFields, with the uids that
// objects have now.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	for _, output := range []string{"backup", "backup.tar.zst"} {
		w := newWorld(t)
		for i := range 3 {
			w.thing(fmt.Sprintf("t%d", i))
		}
		w.configMap(w.ns, "unowned", map[string]any{})
		testkit.Delete(t, configMaps, w.ns, "unowned")
		path := filepath.Join(t.TempDir(), output)
		m := w.save(path)
		if m.Kinds[0].Objects != 3 || m.Kinds[1].Objects != 6 || m.Kinds[0].ResourceVersion == "" || len(m.Files) != 4 {
			t.Fatalf("the manifest is %+v", m)
		}
		before := w.contents()
		w.deleteAll(true)
		plan, result, err := run(t.Context(), w.restore(testkit.Config(t), path, backup.Fail))
		if err != nil || len(result.Refused)+len(result.Changed) > 0 || result.Created != 9 || result.Finished != 9 {
			t.Fatalf("%+v %+v: %v", plan, result, err)
		}
		if fmt.Sprint(plan.Definitions) != "["+w.name()+"]" {
			t.Errorf("the plan is %+v", plan)
		}
		must.Same(t, before, w.contents(), "before:", before, "after")
		plan, result, err = run(t.Context(), w.restore(testkit.Config(t), path, backup.Fail))
		if err != nil || plan.Kinds[0].Equal != 3 || plan.Kinds[1].Equal != 6 || result.Created+result.Finished > 0 {
			t.Errorf("again: %+v %+v: %v", plan, result, err)
		}
		w.deleteAll(false)
	}
}

// A second backup of unchanged objects leaves the output as it is, byte for byte; of the content the bytes depend on
// nothing else.
func TestDeterministic(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.thing("a")
	for _, output := range []string{"backup", "backup.tar.zst"} {
		path := filepath.Join(t.TempDir(), output)
		w.save(path)
		before := contentOf(t, path)
		w.configMap(w.ns, "other", map[string]any{}) // a later resourceVersion
		if _, written, err := w.backup(testkit.Config(t)).Run(t.Context(), path); err != nil || written || contentOf(t, path) != before {
			t.Errorf("%s: written is %t: %v", output, written, err)
		}
		testkit.Patch(t, w.things(), w.ns, "a", "test", `{"spec": {"changed": "`+output+`"}}`)
		if _, written, err := w.backup(testkit.Config(t)).Run(t.Context(), path); err != nil || !written || contentOf(t, path) == before {
			t.Errorf("%s: a change: written is %t: %v", output, written, err)
		}
		if left, _ := os.ReadDir(filepath.Dir(path)); len(left) != 1 {
			t.Errorf("temporary files are left: %v", left)
		}
	}
}

func contentOf(t *testing.T, path string) string {
	t.Helper()
	var all strings.Builder
	must.Do(t, filepath.WalkDir(path, func(name string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			text, err := os.ReadFile(name)
			fmt.Fprintf(&all, "%s %s\n", name, text)
			return err
		}
		return err
	}))
	return all.String()
}

func expand(t *testing.T, path string) string {
	t.Helper()
	in := must.Get(os.Open(path)).In(t)
	defer in.Close()
	expander := must.Get(zstd.NewReader(in)).In(t)
	defer expander.Close()
	text := must.Get(io.ReadAll(expander)).In(t)
	return string(text)
}

// A backup that was cut or changed anywhere is refused before anything is asked.
func TestDamaged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.thing("a")
	dir := t.TempDir()
	w.save(filepath.Join(dir, "backup"))
	w.save(filepath.Join(dir, "backup.tar.zst"))
	whole := expand(t, filepath.Join(dir, "backup.tar.zst"))
	refused := func(path, what string) {
		t.Helper()
		a, err := archive.Open(path, nil)
		if err != nil {
			return
		}
		_ = a.Close()
		// a compressed text can be spelled in several ways
		if info, err := os.Stat(path); err != nil || info.IsDir() || expand(t, path) != whole {
			t.Errorf("%s: it was opened", what)
		}
	}
	var files []string
	_ = filepath.WalkDir(dir, func(name string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files = append(files, name)
		}
		return err
	})
	for _, name := range files {
		path := filepath.Join(dir, "backup")
		if strings.HasSuffix(name, ".zst") {
			path = name
		}
		text := must.Get(os.ReadFile(name)).In(t)
		for i := 0; i < len(text); i += max(1, len(text)/200) {
			_ = os.WriteFile(name, text[:i], 0o600)
			refused(path, fmt.Sprintf("%s cut to %d", name, i))
			altered := append([]byte{}, text...)
			altered[i] ^= 1
			_ = os.WriteFile(name, altered, 0o600)
			refused(path, fmt.Sprintf("%s changed at %d", name, i))
		}
		_ = os.Remove(name)
		refused(path, name+" removed")
		_ = os.WriteFile(name, text, 0o600)
	}
	_ = os.WriteFile(filepath.Join(dir, "backup", "objects", "more.json"), nil, 0o600)
	refused(filepath.Join(dir, "backup"), "a file too many")
	name := filepath.Join(dir, "backup.tar.zst")
	text := must.Get(os.ReadFile(name)).In(t)
	_ = os.WriteFile(name, append(text, text...), 0o600)
	refused(name, "two files, one after the other")
}

// A directory with files that are not part of a backup is neither replaced nor restored. Only regular files are opened.
func TestUnknownFiles(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.thing("a")
	for _, row := range []struct {
		reason string
		put    func(dir string) (name string, err error)
	}{
		{"a file of somebody's", func(dir string) (string, error) {
			name := filepath.Join(dir, "objects", "notes.txt")
			return name, os.WriteFile(name, []byte("mine"), 0o600)
		}},
		{"a symbolic link", func(dir string) (string, error) {
			name := filepath.Join(dir, "definitions", "link")
			return name, os.Symlink("/etc/hostname", name)
		}},
		{"a pipe in the place of the manifest", func(dir string) (string, error) {
			name := filepath.Join(dir, "manifest.json")
			return name, errors.Join(os.Remove(name), syscall.Mkfifo(name, 0o600))
		}},
	} {
		path := filepath.Join(t.TempDir(), "backup")
		w.save(path)
		name := must.Get(row.put(path)).In(t)
		testkit.Patch(t, w.things(), w.ns, "a", "test", `{"spec": {"changed": "`+row.reason+`"}}`)
		if _, _, err := w.backup(testkit.Config(t)).Run(t.Context(), path); err == nil {
			t.Errorf("%s: the backup was replaced", row.reason)
		}
		if _, err := os.Lstat(name); err != nil {
			t.Errorf("%s: %v", row.reason, err)
		}
		if a, err := archive.Open(path, nil); err == nil {
			_ = a.Close()
			t.Errorf("%s: it was opened", row.reason)
		}
	}
}

func TestConflicts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.thing("a")
	w.thing("b")
	path := filepath.Join(t.TempDir(), "backup")
	w.save(path)
	before := w.contents()
	change := func() {
		testkit.Patch(t, w.things(), w.ns, "a", "somebody", `{"spec": {"text": "changed"}}`)
		testkit.Patch(t, w.things(), w.ns, "a", "somebody", `{"status": {"observedGeneration": 77}}`, "status")
		testkit.Delete(t, configMaps, w.other, "b")
	}
	change()
	changed := w.contents()
	plan, _, err := run(t.Context(), w.restore(testkit.Config(t), path, backup.Fail))
	if !errors.Is(err, backup.ErrConflict) || w.contents() != changed {
		t.Errorf("fail: %v", err)
	}
	want := `things.` + w.group + " " + w.ns + "/a: .spec.text is \"changed\" in the cluster and"
	if len(plan.Differences) != 1 || !strings.HasPrefix(plan.Differences[0].String(), want) {
		t.Errorf("differences are %v", plan.Differences)
	}
	_, result, err := run(t.Context(), w.restore(testkit.Config(t), path, backup.Skip))
	if err != nil || result.Created != 1 || result.Replaced != 0 || testkit.Find(t, configMaps, w.other, "b") == nil {
		t.Errorf("skip: %+v: %v", result, err)
	}
	_, result, err = run(t.Context(), w.restore(testkit.Config(t), path, backup.Replace))
	if err != nil || result.Created != 0 || result.Replaced != 1 || len(result.Refused)+len(result.Changed) > 0 {
		t.Errorf("replace: %+v: %v", result, err)
	}
	after := w.contents()
	// The status of what exists is later than that of the backup: it may be all that says which Secret has the value of a
	// renamed one.
	if strings.Contains(after, "changed") || strings.Contains(after, pausedBy) || !strings.Contains(after, `"observedGeneration":77`) {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}

// Into another namespace, references and annotations name the owners there.
func TestAnotherNamespace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.thing("a")
	path := filepath.Join(t.TempDir(), "backup")
	w.save(path)
	r := w.restore(testkit.Config(t), path, backup.Fail)
	to, other := testkit.Namespace(t), testkit.Unique(t)+"-new"
	r.Namespaces = map[string]string{w.ns: to, w.other: other}
	plan, result, err := run(t.Context(), r)
	if err != nil || len(result.Refused)+len(result.Changed) > 0 || fmt.Sprint(plan.Namespaces) != "["+other+"]" {
		t.Fatalf("%+v %+v: %v", plan, result, err)
	}
	there := *w
	there.ns, there.other = to, other
	got := strings.NewReplacer(to, w.ns, other, w.other).Replace(there.contents())
	if want := w.contents(); got != want {
		t.Errorf("here:\n%s\nthere:\n%s", want, got)
	}
}

// A kind of another scope, or one that does not serve the version, is refused before anything is written.
func TestAnotherDefinition(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		reason, scope, version, want string
	}{
		{"another scope", "Cluster", "v1", "is namespaced in the backup and cluster-scoped in the cluster"},
		{"another version", "Namespaced", "v2", "are of version v1, and the CustomResourceDefinition in the cluster serves v2"},
	} {
		w := newWorld(t)
		w.thing("a")
		path := filepath.Join(t.TempDir(), "backup")
		w.save(path)
		w.deleteAll(true)
		testkit.InstallCRDs(t, w.crd(test.scope, test.version))
		counter := testkit.NewCounter()
		_, _, err := run(t.Context(), w.restore(counter.Wrap(testkit.Config(t)), path, backup.Replace))
		if err == nil || !strings.Contains(err.Error(), test.want) || counter.Mutating() > 0 {
			t.Errorf("%s: %d writes: %v", test.reason, counter.Mutating(), err)
		}
	}
	w := newWorld(t) // stored in another version by now, and the old one is served
	w.thing("a")
	path := filepath.Join(t.TempDir(), "backup")
	w.save(path)
	w.deleteAll(true)
	testkit.InstallCRDs(t, w.crd("Namespaced", "v2", "v1"))
	_, result, err := run(t.Context(), w.restore(testkit.Config(t), path, backup.Fail))
	if err != nil || result.Finished != 3 || len(result.Changed) > 0 {
		t.Errorf("another stored version: %+v: %v", result, err)
	}
}

// An owner that is not in the backup is looked up; without it the object is not restored, but all others are.
func TestOwnerIsNotInTheBackup(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.thing("a")
	w.thing("b")
	b := w.backup(testkit.Config(t))
	b.Kinds = b.Kinds[1:]
	b.Kinds[0].Choices[0].Owned = false
	path := filepath.Join(t.TempDir(), "backup")
	if _, _, err := b.Run(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	w.deleteAll(false)
	w.apply(w.things(), w.ns, map[string]any{"apiVersion": w.group + "/v1", "kind": "Thing", "metadata": map[string]any{"name": "a"}})
	_, result, err := run(t.Context(), w.restore(testkit.Config(t), path, backup.Fail))
	if err != nil || result.Finished != 1 || len(result.Refused) != 3 {
		// The owner that an annotation names is of a kind that the backup lacks.
		t.Fatalf("%+v: %v", result, err)
	}
	uid := testkit.Get(t, w.things(), w.ns, "a").GetUID()
	if got := testkit.Get(t, configMaps, w.ns, "a").GetOwnerReferences(); got[0].UID != uid {
		t.Errorf("owners are %v, want uid %s", got, uid)
	}
	for _, p := range result.Refused {
		if !strings.Contains(p.Text, "its owner") {
			t.Errorf("refused: %s", p)
		}
	}
}

// Killed at any request, a restore that is run again finishes, and upstreams are paused until then.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.thing("a")
	path := filepath.Join(t.TempDir(), "backup")
	w.save(path)
	before := w.contents()
	for n := 1; ; n++ {
		w.deleteAll(n%5 == 1)
		ctx, cancel := context.WithCancel(t.Context())
		config, sent := testkit.Config(t), 0
		config.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return tripper(func(r *http.Request) (*http.Response, error) {
				if sent++; sent > n {
					cancel()
					return nil, errors.New("killed")
				}
				answer, err := next.RoundTrip(r)
				if sent == n {
					cancel() // the answer does not arrive
				}
				return answer, err
			})
		})
		_, _, err := run(ctx, w.restore(config, path, backup.Fail))
		cancel()
		_, result, again := run(t.Context(), w.restore(testkit.Config(t), path, backup.Fail))
		if again != nil || len(result.Refused)+len(result.Changed) > 0 {
			t.Fatalf("after %d requests (%v): %+v: %v", n, err, result, again)
		}
		if after := w.contents(); after != before {
			t.Fatalf("after %d requests before:\n%s\nafter:\n%s", n, before, after)
		}
		if sent < n {
			t.Logf("done after %d requests", n)
			break
		}
	}
}

type tripper func(*http.Request) (*http.Response, error)

func (f tripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Pages that grew too old are listed again from the first, and nothing is written twice; all namespaces are at one
// resourceVersion.
func TestPagesGrowOld(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.thing("a")
	owners, _, _ := unstructured.NestedSlice(testkit.Get(t, configMaps, w.ns, "a").Object, "metadata", "ownerReferences")
	for i := range 150 {
		w.configMap(w.ns, fmt.Sprintf("c%03d", i), map[string]any{"ownerReferences": owners})
	}
	config, later, exact := testkit.Config(t), 0, 0
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return tripper(func(r *http.Request) (*http.Response, error) {
			if strings.Contains(r.URL.RawQuery, "resourceVersionMatch=Exact") {
				exact++
			}
			if strings.Contains(r.URL.RawQuery, "continue=") {
				later++
			}
			answer, err := next.RoundTrip(r)
			if err == nil && later == 1 && strings.Contains(r.URL.RawQuery, "continue=") {
				_ = answer.Body.Close()
				answer.StatusCode, answer.Header = http.StatusGone, http.Header{"Content-Type": {"application/json"}}
				answer.Body = io.NopCloser(strings.NewReader(`{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Expired", "code": 410}`))
			}
			return answer, err
		})
	})
	m, _, err := w.backup(config).Run(t.Context(), filepath.Join(t.TempDir(), "backup"))
	if err != nil || m.Kinds[1].Objects != 152 || later < 2 || exact == 0 {
		t.Errorf("%d later pages, %d lists at a resourceVersion: %+v: %v", later, exact, m, err)
	}
}

// One object that the API server refuses does not stop the others; what it changes is reported.
func TestRefusedAndChanged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, name := range []string{"a", "b", "c"} {
		w.thing(name)
	}
	path := filepath.Join(t.TempDir(), "backup")
	w.save(path)
	w.deleteAll(false)
	free := w.crd("Namespaced", "v1")
	testkit.InstallCRDs(t, strings.Replace(free, "{type: object, x-", `{type: object, x-kubernetes-validations: [{rule: "self.metadata.name != 'b'", message: not this one}], x-`, 1))
	dry := w.restore(testkit.Config(t), path, backup.Fail)
	dry.DryRun = true
	_, would, err := run(t.Context(), dry)
	if err != nil || testkit.Find(t, w.things(), w.ns, "a") != nil {
		t.Fatalf("the dry run: %+v: %v", would, err)
	}
	_, result, err := run(t.Context(), w.restore(testkit.Config(t), path, backup.Fail))
	if err != nil || result.Finished != 6 || len(result.Refused) != 3 || !strings.Contains(result.Refused[0].String(), "not this one") ||
		fmt.Sprint(would) != fmt.Sprint(result) {
		t.Fatalf("%+v: %v; the dry run said %+v", result, err, would)
	}
	testkit.InstallCRDs(t, free)
	_, result, err = run(t.Context(), w.restore(testkit.Config(t), path, backup.Fail))
	if err != nil || result.Finished != 3 || len(result.Refused) > 0 {
		t.Fatalf("again: %+v: %v", result, err)
	}
}

// An owner and what it owns may be of one kind, and be listed in either order.
func TestOwnerOfTheSameKind(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for owner, owned := range map[string][2]string{"a": {"b", "c"}, "z": {"y", "x"}, "m": {"l", "n"}, "p": {"r", "q"}} {
		u := w.apply(configMaps, w.ns, map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
			"metadata": map[string]any{"name": owner, "labels": map[string]any{"example.com/upstream": "yes"}}})
		for _, owned := range owned {
			u = w.apply(configMaps, w.ns, map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": owned,
				"annotations": map[string]any{ownedBy: w.ns + "/" + u.GetName() + "/" + string(u.GetUID())}}})
		}
	}
	w.configMap(w.ns, "of-nobody", map[string]any{})
	b := w.backup(testkit.Config(t))
	selector := labels.SelectorFromSet(labels.Set{"example.com/upstream": "yes"})
	b.Operators = []archive.Operator{{Name: "operator", Upstream: "configmaps", Owners: []string{ownedBy}}}
	b.Kinds = []backup.Selection{{GVK: configMaps.GroupVersion().WithKind("ConfigMap"), Resource: "configmaps", Namespaced: true,
		Namespaces: []string{w.ns}, Choices: []backup.Choice{{Selector: selector}, {Owned: true}}}}
	m, _, err := b.Run(t.Context(), filepath.Join(t.TempDir(), "backup"))
	if err != nil || m.Kinds[0].Objects != 12 {
		t.Errorf("%+v: %v", m, err)
	}
}
