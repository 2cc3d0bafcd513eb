//go:build controlplane

package cases

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/internal/controlplane"
	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/kinds"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// TestServerIsFaithful applies what the examples render to a real API server and to the one of test cases: who owns
// which field must be the same, and so must what we see of the object, after the apply and after somebody else's write.
func TestServerIsFaithful(t *testing.T) {
	var definitions []string
	crds, err := filepath.Glob("../../examples/configs/*/crd.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range crds {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		definitions = append(definitions, string(text))
	}
	testkit.InstallCRDs(t, definitions...)
	source, err := kinds.Offline(crds...)
	if err != nil {
		t.Fatal(err)
	}
	rendered, err := filepath.Glob("../../examples/configs/*/rendered.yaml")
	if err != nil || len(rendered) < 10 {
		t.Fatalf("%d examples, %v", len(rendered), err)
	}
	compared := 0
	for _, path := range rendered {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		list, err := controlplane.Documents(string(text))
		if err != nil {
			t.Fatal(err)
		}
		for _, u := range list {
			kind, err := source.Kind(u.GroupVersionKind())
			if err != nil || !kind.Namespaced {
				continue // a Namespace of another test's
			}
			compared++
			t.Run(filepath.Base(filepath.Dir(path))+"/"+u.GetKind(), func(t *testing.T) { compareServers(t, source, kind, u) })
		}
	}
	if compared < 15 {
		t.Errorf("%d objects were compared", compared)
	}
}

func compareServers(t *testing.T, source kinds.Source, kind *kinds.Kind, document *unstructured.Unstructured) {
	const manager = "faithful"
	document.SetNamespace(testkit.Namespace(t))
	client := testkit.Dynamic(t).Resource(kind.GVR).Namespace(document.GetNamespace())
	actual, err := client.Apply(t.Context(), document.GetName(), document, metav1.ApplyOptions{FieldManager: manager, Force: true})
	if err != nil {
		t.Fatal(err)
	}
	s := &server{kinds: source}
	played, err := s.apply(nil, document.Object, manager)
	if err != nil {
		t.Fatal(err)
	}
	view := &drift.View{Manager: manager}
	same := func(when string) {
		t.Helper()
		if diff := cmp.Diff(ownedBy(actual, manager), ownedBy(played, manager)); diff != "" {
			t.Errorf("%s other fields are ours (- API server, + case):\n%s", when, diff)
		}
		want, err := view.Live(actual)
		if err != nil {
			t.Fatal(err)
		}
		got, err := view.Live(played)
		if err != nil {
			t.Fatal(err)
		}
		if got.P != want.P || got.Foreign != want.Foreign || got.CoOwned != want.CoOwned {
			t.Errorf("%s the case sees %v %v %v, want %v %v %v", when, got.P, got.Foreign, got.CoOwned, want.P, want.Foreign, want.CoOwned)
		}
	}
	same("after the apply")

	patch := `{"metadata":{"annotations":{"tools.example.com/theirs":"yes"},"labels":{"platform.example.com/managed-by":"them","tools.example.com/managed-by":"them"}}}`
	if actual, err = client.Patch(t.Context(), document.GetName(), types.MergePatchType, []byte(patch),
		metav1.PatchOptions{FieldManager: "them"}); err != nil {
		t.Fatal(err)
	}
	changed := played.DeepCopy()
	for _, key := range []string{"platform.example.com/managed-by", "tools.example.com/managed-by"} {
		labels := changed.GetLabels()
		labels[key] = "them"
		changed.SetLabels(labels)
	}
	annotations := changed.GetAnnotations()
	annotations["tools.example.com/theirs"] = "yes"
	changed.SetAnnotations(annotations)
	if played, err = s.write(played, changed, "them", ""); err != nil {
		t.Fatal(err)
	}
	same("after somebody's write")

	if actual, err = client.Apply(t.Context(), document.GetName(), document, metav1.ApplyOptions{FieldManager: manager,
		Force: true}); err != nil {
		t.Fatal(err)
	}
	if played, err = s.apply(played, document.Object, manager); err != nil {
		t.Fatal(err)
	}
	same("after another apply")
}

// ownedBy is what a manager applied to the object, as text.
func ownedBy(u *unstructured.Unstructured, manager string) string {
	for _, e := range u.GetManagedFields() {
		if e.Manager == manager && e.Operation == metav1.ManagedFieldsOperationApply {
			return e.FieldsV1.GetRawString()
		}
	}
	return ""
}
