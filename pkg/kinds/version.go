package kinds

import (
	"context"
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// Version is one version of a custom kind: what the API server makes of its schema.
type Version struct {
	Name       string
	Structural *structuralschema.Structural
	// Schema is the same in the form of OpenAPI.
	Schema    *spec.Schema
	HasStatus bool

	validator crdvalidation.SchemaValidator
	rules     *cel.Validator // nil without x-kubernetes-validations
}

// Versions are the versions that a CustomResourceDefinition serves.
func Versions(crd *apiextensionsv1.CustomResourceDefinition) ([]*Version, error) {
	var versions []*Version
	for i := range crd.Spec.Versions {
		v := &crd.Spec.Versions[i]
		if !v.Served {
			continue
		}
		read, err := readVersion(v)
		if err != nil {
			return nil, fmt.Errorf("reading the schema of version %s: %w", v.Name, err)
		}
		versions = append(versions, read)
	}
	return versions, nil
}

func readVersion(v *apiextensionsv1.CustomResourceDefinitionVersion) (*Version, error) {
	schema, err := crdSchema(v)
	if err != nil {
		return nil, err
	}
	internal := &apiextensions.JSONSchemaProps{}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(
		v.Schema.OpenAPIV3Schema,
		internal,
		nil,
	); err != nil {
		return nil, err
	}
	s, err := structuralschema.NewStructural(internal)
	if err != nil {
		return nil, err
	}
	if err := defaulting.PruneDefaults(s); err != nil {
		return nil, err
	}
	validator, _, err := crdvalidation.NewSchemaValidator(internal)
	if err != nil {
		return nil, err
	}
	return &Version{
		Name: v.Name, Structural: s, Schema: schema, HasStatus: v.Subresources != nil && v.Subresources.Status != nil,
		validator: validator, rules: cel.NewValidator(s, true, celconfig.PerCallLimit),
	}, nil
}

// Coerce brings an object's content into the form in which the API server serves it: fields that are not declared are dropped, and
// defaults are filled in. It returns the paths of what was dropped.
func (v *Version) Coerce(obj map[string]any) (unknown []string) {
	unknown = pruning.PruneWithOptions(obj, v.Structural, true, structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	defaulting.PruneNonNullableNullsWithoutDefaults(obj, v.Structural)
	defaulting.Default(obj, v.Structural)
	return unknown
}

// Validate returns what is wrong with a new object by its schema, its lists and its rules.
func (v *Version) Validate(ctx context.Context, obj map[string]any) field.ErrorList {
	errs := crdvalidation.ValidateCustomResource(nil, obj, v.validator)
	errs = append(errs, objectmeta.Validate(ctx, nil, obj, v.Structural, false)...)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, v.Structural, obj)...)
	if v.rules == nil || len(errs) > 0 {
		return errs
	}
	ruled, _ := v.rules.Validate(ctx, nil, v.Structural, obj, nil, celconfig.RuntimeCELCostBudget)
	return append(errs, ruled...)
}
