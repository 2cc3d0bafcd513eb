package backup_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/backup"
)

// An upstream that someone edits after a restore was killed is not left paused by one that skips it.
func TestInterruptedAndEdited(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.thing("a")
	path := filepath.Join(t.TempDir(), "backup")
	w.save(path)
	w.deleteAll(false)
	ctx, kill := context.WithCancel(t.Context())
	defer kill()
	config := testkit.Config(t)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return tripper(func(r *http.Request) (*http.Response, error) {
			if ctx.Err() != nil {
				return nil, errors.New("killed")
			}
			answer, err := next.RoundTrip(r)
			if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/things") {
				kill()
			}
			return answer, err
		})
	})
	if _, _, err := run(ctx, w.restore(config, path, backup.Fail)); err == nil {
		t.Fatal("the restore was not killed")
	}
	if testkit.Get(t, w.things(), w.ns, "a").GetAnnotations()[pausedBy] != "true" {
		t.Fatal("the upstream is not paused")
	}
	testkit.Patch(t, w.things(), w.ns, "a", "somebody", `{"spec": {"text": "edited"}}`)
	plan, result, err := run(t.Context(), w.restore(testkit.Config(t), path, backup.Skip))
	if err != nil || len(result.Refused) > 0 {
		t.Fatalf("%+v: %v", result, err)
	}
	if len(plan.Differences) != 1 || !strings.Contains(plan.Differences[0].Text, "a restore that was interrupted has not finished it") {
		t.Errorf("the plan has %v", plan.Differences)
	}
	u := testkit.Get(t, w.things(), w.ns, "a")
	if spec, _ := u.Object["spec"].(map[string]any); spec["text"] != "edited" || u.GetAnnotations()[pausedBy] != "" {
		t.Errorf("spec %v, annotations %v", u.Object["spec"], u.GetAnnotations())
	}
	if slices.ContainsFunc(u.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool { return strings.Contains(e.Manager, "restore") }) {
		t.Errorf("managed by %v", u.GetManagedFields())
	}
}

// TestPauseOfAnotherValue: an annotation that does not pause comes back with its manager, also if the restore was
// killed after it set it.
func TestPauseOfAnotherValue(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.thing("a")
	testkit.Patch(t, w.things(), w.ns, "a", "annotator", `{"metadata": {"annotations": {"`+pausedBy+`": "by-user"}}}`)
	path := filepath.Join(t.TempDir(), "backup")
	w.save(path)
	for _, isKilled := range []bool{false, true} {
		w.deleteAll(false)
		ctx, kill := context.WithCancel(t.Context())
		config := testkit.Config(t)
		config.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return tripper(func(r *http.Request) (*http.Response, error) {
				var body []byte
				if r.Body != nil {
					body, _ = io.ReadAll(r.Body)
					r.Body = io.NopCloser(bytes.NewReader(body))
				}
				answer, err := next.RoundTrip(r)
				if isKilled && r.Method == http.MethodPatch && bytes.Contains(body, []byte("by-user")) {
					kill()
				}
				return answer, err
			})
		})
		if _, _, err := run(ctx, w.restore(config, path, backup.Fail)); (err != nil) != isKilled {
			t.Fatalf("killed is %t: %v", isKilled, err)
		}
		kill()
		if isKilled {
			plan, result, err := run(t.Context(), w.restore(testkit.Config(t), path, backup.Fail))
			if err != nil || result.Finished != 1 || len(plan.Differences) > 0 {
				t.Errorf("again: %+v, %v: %v", result, plan.Differences, err)
			}
		}
		managers := map[string]string{}
		for _, e := range testkit.Get(t, w.things(), w.ns, "a").GetManagedFields() {
			managers[e.Manager] += string(e.FieldsV1.GetRawBytes())
		}
		if !strings.Contains(managers["annotator"], pausedBy) || managers["restorer"] != "" {
			t.Errorf("killed is %t: managers are %v", isKilled, managers)
		}
		plan, result, err := run(t.Context(), w.restore(testkit.Config(t), path, backup.Fail))
		if err != nil || plan.Different() > 0 || result.Finished+result.Created > 0 {
			t.Errorf("killed is %t: a restore once more: %v, %v, %v", isKilled, plan, result, err)
		}
	}
}

// Whoever applied a definition can apply it again after it was restored.
func TestRestoredDefinitionIsFree(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.thing("a")
	path := filepath.Join(t.TempDir(), "backup")
	w.save(path)
	w.deleteAll(true)
	if _, result, err := run(t.Context(), w.restore(testkit.Config(t), path, backup.Fail)); err != nil || len(result.Refused) > 0 {
		t.Fatalf("%+v: %v", result, err)
	}
	for _, e := range testkit.Get(t, definitions, "", w.name()).GetManagedFields() {
		if e.Subresource == "" {
			t.Errorf("%s owns fields of the definition", e.Manager)
		}
	}
}

// A definition that would drop fields of the objects is refused before anything is written.
func TestRestoreIntoAnotherStoredVersion(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.thing("a")
	path := filepath.Join(t.TempDir(), "backup")
	w.save(path)
	w.deleteAll(true)
	crd := w.crd("Namespaced", "v1beta1", "v1")
	kept := "{openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}"
	const declared = "{openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {b: {type: string}}}}}}"
	testkit.InstallCRDs(t, strings.Replace(crd, kept, declared, 1))
	_, _, err := run(t.Context(), w.restore(testkit.Config(t), path, backup.Fail))
	if err == nil || !strings.Contains(err.Error(), "without a conversion, which drops what objects of version v1 have") {
		t.Errorf("the error is %v", err)
	}
}

// A status that is later than that of the backup stays, and so do its owners: what its operator does not apply any more
// goes.
func TestLaterStatusHasItsOwners(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.thing("a")
	apply := func(status map[string]any) *unstructured.Unstructured {
		t.Helper()
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": w.group + "/v1", "kind": "Thing",
			"metadata": map[string]any{"name": "a"}, "status": status}}
		return must.Get(testkit.Dynamic(t).Resource(w.things()).Namespace(w.ns).
			ApplyStatus(t.Context(), "a", u, metav1.ApplyOptions{FieldManager: "reporter"})).In(t)
	}
	apply(map[string]any{"one": "1"})
	path := t.TempDir() + "/backup"
	w.save(path)
	testkit.Patch(t, w.things(), w.ns, "a", "somebody", `{"spec":{"text":"changed"}}`)
	apply(map[string]any{"one": "1", "two": "2"})
	_, result, err := run(t.Context(), w.restore(testkit.Config(t), path, backup.Replace))
	if err != nil || result.Replaced != 1 || len(result.Refused) > 0 {
		t.Fatalf("%+v: %v", result, err)
	}
	if have := apply(map[string]any{"one": "1"}).Object["status"]; strings.Contains(fmt.Sprint(have), "two") {
		t.Errorf("the status still is %v", have)
	}
	if have := testkit.Get(t, w.things(), w.ns, "a"); strings.Contains(fmt.Sprint(have.GetManagedFields()), "restorer") {
		t.Errorf("the restore owns something: %v", have.GetManagedFields())
	}
}
