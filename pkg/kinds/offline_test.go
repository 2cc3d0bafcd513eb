package kinds

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// summary is what a row of TestOfflineKind expects of a Kind.
type summary struct {
	Resource   string
	Namespaced bool
	HasStatus  bool
	HasSchema  bool
}

func TestOfflineKind(t *testing.T) {
	source, err := Offline("testdata/crds")
	if err != nil {
		t.Fatal(err)
	}
	tools := func(version, kind string) schema.GroupVersionKind {
		return schema.GroupVersionKind{Group: "tools.example.com", Version: version, Kind: kind}
	}
	for name, tc := range map[string]struct {
		reason string
		gvk    schema.GroupVersionKind
		want   summary
	}{
		"custom":         {"a definition tells everything", tools("v1beta1", "Appoperator"), summary{"appoperators", true, true, true}},
		"cluster-scoped": {"the scope is the definition's, and a later document of the file counts", tools("v1", "Tenant"), summary{"tenants", false, false, true}},
		"deployment":     {"built-in kinds need no definition", schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, summary{"deployments", true, true, true}},
		"namespace":      {"built-in and cluster-scoped", schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, summary{"namespaces", false, true, true}},
		"configmap":      {"built-in without a status", schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, summary{"configmaps", true, false, true}},
		"networkpolicy":  {"an irregular plural, and a status that was taken away", schema.GroupVersionKind{Group: "networking.k8s.io", Version: "v1", Kind: "NetworkPolicy"}, summary{"networkpolicies", true, false, true}},
		"endpoints":      {"a kind that is a plural already", schema.GroupVersionKind{Version: "v1", Kind: "Endpoints"}, summary{"endpoints", true, false, true}},
		"clusterrole":    {"built-in and cluster-scoped, in a group", schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"}, summary{"clusterroles", false, false, true}},
		"definition":     {"definitions themselves can be downstreams", schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}, summary{"customresourcedefinitions", false, true, true}},
		"disabled":       {"built-in, at a version that is not served by default", schema.GroupVersionKind{Group: "networking.k8s.io", Version: "v1beta1", Kind: "Ingress"}, summary{"ingresses", true, true, false}},
	} {
		t.Run(name, func(t *testing.T) {
			k, err := source.Kind(tc.gvk)
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			got := summary{k.GVR.Resource, k.Namespaced, k.HasStatus, k.Schema != nil}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s:\n%s", tc.reason, diff)
			}
			if k.GVK != tc.gvk || k.GVR.GroupVersion() != tc.gvk.GroupVersion() {
				t.Errorf("kind %v as resource %v, want %v", k.GVK, k.GVR, tc.gvk)
			}
			if (k.SchemaErr == nil) != (k.Schema != nil) {
				t.Errorf("SchemaErr %v does not fit a schema of %v", k.SchemaErr, k.Schema != nil)
			}
		})
	}
}

func TestOfflineUnknown(t *testing.T) {
	source, err := Offline("testdata/crds")
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		reason string
		gvk    schema.GroupVersionKind
		want   string
	}{
		"group": {"a group that nothing describes", schema.GroupVersionKind{Group: "other.example.com", Version: "v1", Kind: "Thing"}, "give the file of its CustomResourceDefinition"},
		"wrong group": {"a built-in kind, its group cut short", schema.GroupVersionKind{Group: "rbac", Version: "v1", Kind: "RoleBinding"},
			"there is one in rbac.authorization.k8s.io/v1; if this is not intended, give the file"},
		"not served":  {"a version that is not served is not there", schema.GroupVersionKind{Group: "tools.example.com", Version: "v1alpha1", Kind: "Appoperator"}, "it is known in tools.example.com/v1beta1"},
		"misspelt":    {"a built-in kind, misspelt", schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deploymnt"}, "did you mean Deployment?"},
		"list":        {"a list is no object", schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "DeploymentList"}, "has no kind DeploymentList in apps/v1"},
		"old version": {"a built-in kind at a version that is gone", schema.GroupVersionKind{Group: "networking.k8s.io", Version: "v1alpha9", Kind: "Ingress"}, "it is known in networking.k8s.io/v1, networking.k8s.io/v1beta1"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := source.Kind(tc.gvk)
			if !errors.Is(err, ErrUnknown) {
				t.Fatalf("%s: got %v, want ErrUnknown", tc.reason, err)
			}
			if !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: got %q, want it to say %q", tc.reason, err, tc.want)
			}
		})
	}
}

func TestOfflineSchema(t *testing.T) {
	source, err := Offline("testdata/crds/appoperators.yaml")
	if err != nil {
		t.Fatal(err)
	}
	k, err := source.Kind(schema.GroupVersionKind{Group: "tools.example.com", Version: "v1beta1", Kind: "Appoperator"})
	if err != nil {
		t.Fatal(err)
	}
	checkAppoperatorSchema(t, k.Schema)
}

// checkAppoperatorSchema checks what readers of a schema rely on, from any source.
func checkAppoperatorSchema(t *testing.T, s *spec.Schema) {
	t.Helper()
	if s.Description != "" || s.Properties["spec"].Properties["image"].Description != "" {
		t.Error("descriptions are still there")
	}
	properties := s.Properties["spec"].Properties
	env := properties["env"]
	if got, _ := env.Extensions.GetString("x-kubernetes-list-type"); got != "map" {
		t.Errorf("list type of spec.env is %q, want map", got)
	}
	if got, _ := env.Extensions.GetStringSlice("x-kubernetes-list-map-keys"); !cmp.Equal(got, []string{"name"}) {
		t.Errorf("map keys of spec.env are %q, want name", got)
	}
	if got, _ := properties["port"].Extensions.GetBool("x-kubernetes-int-or-string"); !got {
		t.Error("spec.port is no int-or-string any more")
	}
	if got, _ := properties["config"].Extensions.GetBool("x-kubernetes-preserve-unknown-fields"); !got {
		t.Error("spec.config does not preserve unknown fields any more")
	}
	if !properties["replicas"].Type.Contains("integer") || !properties["labels"].AdditionalProperties.Schema.Type.Contains("string") {
		t.Error("the types of spec.replicas and spec.labels are gone")
	}
}

// TestOfflineFiles runs the archives in testdata/offline: Offline gets the files of an archive (as one directory), and the file
// "want" is the error, or the kinds that it adds.
func TestOfflineFiles(t *testing.T) {
	names, err := filepath.Glob("testdata/offline/*.txtar")
	if err != nil || len(names) == 0 {
		t.Fatalf("no archives: %v", err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			dir, want := t.TempDir(), ""
			for _, f := range archive.Files {
				if f.Name == "want" {
					want = string(f.Data)
					continue
				}
				path := filepath.Join(dir, f.Name)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, f.Data, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if got := offlineText(dir); strings.TrimSpace(got) != strings.TrimSpace(want) {
				t.Errorf("%s\ngot:\n%s\nwant:\n%s", archive.Comment, got, want)
			}
		})
	}
}

// offlineText returns the result of Offline for a directory, without the path of the directory.
func offlineText(dir string) string {
	source, err := Offline(dir)
	if err != nil {
		return strings.ReplaceAll(err.Error(), dir+string(filepath.Separator), "")
	}
	var lines []string
	for gvk := range source.(*files).where {
		lines = append(lines, gvk.GroupVersion().String()+" "+gvk.Kind)
	}
	return strings.Join(lines, "\n")
}

func TestOfflineMissingFile(t *testing.T) {
	if _, err := Offline("testdata/absent"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want that the path does not exist", err)
	}
}

// TestOfflineMountedConfigMap: the names in a mounted ConfigMap are links into a directory whose name begins with dots.
func TestOfflineMountedConfigMap(t *testing.T) {
	dir := t.TempDir()
	data, err := os.ReadFile("testdata/crds/appoperators.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "..2026"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "..2026", "crd.yaml"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	for link, target := range map[string]string{"..data": "..2026", "crd.yaml": filepath.Join("..data", "crd.yaml")} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	source, err := Offline(dir)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(source.(*files).where); n != 2 {
		t.Errorf("%d kinds found, want 2", n)
	}
}
