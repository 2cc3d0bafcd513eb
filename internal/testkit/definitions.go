package testkit

import (
	"os"
	"slices"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/yaml"
)

// Definition reads a CustomResourceDefinition from a file.
func Definition(t testing.TB, path string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	definition := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(text, definition); err != nil {
		t.Fatal(err)
	}
	return definition
}

// CheckAppoperatorSchema checks what readers of a schema rely on, from any source: that of the kind Appoperator in
// pkg/kinds/testdata.
func CheckAppoperatorSchema(t testing.TB, s *spec.Schema) {
	t.Helper()
	if s.Description != "" || s.Properties["spec"].Properties["image"].Description != "" {
		t.Error("descriptions are still there")
	}
	properties := s.Properties["spec"].Properties
	env := properties["env"]
	if got, _ := env.Extensions.GetString("x-kubernetes-list-type"); got != "map" {
		t.Errorf("list type of spec.env is %q, want map", got)
	}
	if got, _ := env.Extensions.GetStringSlice("x-kubernetes-list-map-keys"); !slices.Equal(got, []string{"name"}) {
		t.Errorf("map keys of spec.env are %q, want name", got)
	}
	if got, _ := properties["port"].Extensions.GetBool("x-kubernetes-int-or-string"); !got {
		t.Error("spec.port is no int-or-string any more")
	}
	if got, _ := properties["config"].Extensions.GetBool("x-kubernetes-preserve-unknown-fields"); !got {
		t.Error("spec.config does not preserve unknown fields any more")
	}
	if !properties["replicas"].Type.Contains("integer") ||
		!properties["labels"].AdditionalProperties.Schema.Type.Contains("string") {
		t.Error("the types of spec.replicas and spec.labels are gone")
	}
}
