package migrate_test

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corollary-dev/corollary/internal/bubble"
	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/migrate"
)

// What others do in between refuses no object and begins nothing again: an object that is made again under its name is
// rewritten, and a definition of which only a condition has changed is the same one.
func TestMigrateBesideOthers(t *testing.T) {
	bubble.Run(t, nil, func(t *testing.T) {
		k, again, touched := changed(t, 3), false, false
		m := k.migration(before(t, func(path string) {
			switch {
			case strings.HasSuffix(path, "/things/t0") && !again:
				again = true
				testkit.Delete(t, k.resource("v1"), k.ns, "t0")
				k.apply("v1beta1", "somebody", "t0", "a", "again")
			case strings.HasSuffix(path, k.name()+"/status") && !touched:
				touched = true
				testkit.Patch(t, definitions, "", k.name(), "somebody", `{"metadata": {"annotations": {"example.com/touched": "yes"}}}`)
			}
		}), "v1beta1")
		if _, r, err := run(t, m); err != nil || !r.Trimmed || r.Refused > 0 || r.Fixed != 3 || !again || !touched {
			t.Errorf("the result is %+v: %v", r, err)
		}
	})
}

// A definition that was deleted and made again is another one, though its generation is the same.
func TestMigrateMadeAgain(t *testing.T) {
	bubble.Run(t, nil, func(t *testing.T) {
		k := define(t, "v1beta1!")
		k.fill(1)
		m := k.migration(testkit.Dynamic(t))
		p := must.Get(m.Plan(t.Context())).In(t)
		testkit.Delete(t, definitions, "", k.name())
		testkit.Eventually(t, patience, func() (bool, string) {
			_, err := testkit.Dynamic(t).Resource(definitions).Get(t.Context(), k.name(), metav1.GetOptions{})
			return apierrors.IsNotFound(err), fmt.Sprint("the definition: ", err)
		})
		k.change("v1beta1", "v1beta1!")
		if r, err := m.Run(t.Context(), p); !errors.Is(err, migrate.ErrChanged) {
			t.Errorf("the result is %+v: %v", r, err)
		}
	})
}

// Who wrote an object in both versions has one entry in managedFields afterwards, with the fields of both.
func TestMigrateWriterOfBothVersions(t *testing.T) {
	bubble.Run(t, nil, func(t *testing.T) {
		k := define(t, "v1beta1!", "v1")
		k.fill(1)
		for version, spec := range map[string]string{"v1beta1": `{"b": "x"}`, "v1": `{"o": {"p": "x"}}`} {
			testkit.Patch(t, k.resource(version), k.ns, "t0", "editor", `{"spec": `+spec+`}`)
		}
		k.change("v1", "v1beta1", "v1!")
		if _, r, err := run(t, k.migration(testkit.Dynamic(t), "v1beta1")); err != nil || !r.Trimmed || r.Fixed != 1 {
			t.Fatalf("the result is %+v: %v", r, err)
		}
		var editor []string
		for _, entry := range k.get("t0").GetManagedFields() {
			if entry.Manager == "editor" {
				editor = append(editor, entry.APIVersion+" "+string(entry.FieldsV1.GetRawBytes()))
			}
		}
		want := k.group + `/v1 {"f:spec":{"f:b":{},"f:o":{".":{},"f:p":{}}}}`
		if len(editor) != 1 || editor[0] != want {
			t.Errorf("the writer has %q instead of %q", editor, want)
		}
	})
}

// While fields are filled in, others write the object, delete it, or fill it in themselves: nothing of theirs is
// reverted or made again.
func TestFillBesideOthers(t *testing.T) {
	bubble.Run(t, nil, func(t *testing.T) {
		k, did := define(t, "v1!"), map[string]bool{}
		for _, name := range []string{"written", "deleted", "filled"} {
			k.apply("v1", "somebody", name, "a", "x")
		}
		m := k.migration(before(t, func(url string) {
			name := path.Base(url)
			if did[name] {
				return
			}
			switch did[name] = true; name {
			case "written":
				testkit.Patch(t, k.resource("v1"), k.ns, name, "other", `{"spec": {"o": {"p": "theirs"}}}`)
			case "deleted":
				testkit.Delete(t, k.resource("v1"), k.ns, name)
			case "filled":
				testkit.Patch(t, k.resource("v1"), k.ns, name, "other", `{"spec": {"b": "theirs"}}`)
			}
		}))
		m.Fill = []string{".spec.b='ours'"}
		if _, r, err := run(t, m); err != nil || r.Refused > 0 || r.Done != 3 {
			t.Errorf("the result is %+v: %v", r, err)
		}
		for name, want := range map[string]string{"written": "map[a:x b:ours o:map[p:theirs]]", "filled": "map[a:x b:theirs]"} {
			must.Same(t, want, fmt.Sprint(k.get(name).Object["spec"]), name)
		}
		if testkit.Find(t, k.resource("v1"), k.ns, "deleted") != nil {
			t.Error("the deleted object is made again")
		}
	})
}
