package kinds

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/corollary-dev/corollary/pkg/fieldpath"
)

// Version is one version of a custom kind: its schema as the API server uses it.
type Version struct {
	Name       string
	Structural *structuralschema.Structural
	// Schema is the same schema as OpenAPI.
	Schema            *spec.Schema
	Served, HasStatus bool

	validator       crdvalidation.SchemaValidator
	statusValidator crdvalidation.SchemaValidator // nil if the schema has no status
	rules           *cel.Validator                // nil without x-kubernetes-validations
}

// Versions returns the versions of a CustomResourceDefinition. Objects can be stored, and applied, in unserved versions
// too.
func Versions(crd *apiextensionsv1.CustomResourceDefinition) ([]*Version, error) {
	var versions []*Version
	for i := range crd.Spec.Versions {
		read, err := readVersion(&crd.Spec.Versions[i])
		if err != nil {
			return nil, fmt.Errorf("reading the schema of version %s: %w", crd.Spec.Versions[i].Name, err)
		}
		versions = append(versions, read)
	}
	return versions, nil
}

// OpenAPI converts a schema to OpenAPI. The result shares no memory with it, because pruning changes defaults in place.
func OpenAPI(s *structuralschema.Structural) *spec.Schema { return Tidy(s.DeepCopy().ToKubeOpenAPI()) }

func readVersion(v *apiextensionsv1.CustomResourceDefinitionVersion) (*Version, error) {
	internal, s, err := structuralOf(v)
	if err != nil {
		return nil, err
	}
	read := &Version{Name: v.Name, Structural: s, Served: v.Served, HasStatus: v.Subresources != nil &&
		v.Subresources.Status != nil,
		Schema: OpenAPI(s)}
	if err := defaulting.PruneDefaults(s); err != nil {
		return nil, err
	}
	if read.validator, _, err = crdvalidation.NewSchemaValidator(internal); err != nil {
		return nil, err
	}
	if status, ok := internal.Properties["status"]; ok {
		if read.statusValidator, _, err = crdvalidation.NewSchemaValidator(&status); err != nil {
			return nil, err
		}
	}
	read.rules = cel.NewValidator(s, true, celconfig.PerCallLimit)
	return read, nil
}

// Field returns the schema of a field below another one; nil if there is none. The path has only names of fields.
func Field(s *structuralschema.Structural, path fieldpath.Path) *structuralschema.Structural {
	for _, step := range path {
		if s = Member(s, step.Field); s == nil {
			return nil
		}
	}
	return s
}

// Member returns the schema of a key of an object or map; nil if there is none.
func Member(s *structuralschema.Structural, key string) *structuralschema.Structural {
	if s == nil {
		return nil
	}
	if property, ok := s.Properties[key]; ok {
		return &property
	}
	return ValuesOf(s)
}

// ValuesOf is the schema of the values of a map; nil for anything else, and where they may be anything.
func ValuesOf(s *structuralschema.Structural) *structuralschema.Structural {
	if s.AdditionalProperties == nil {
		return nil
	}
	return s.AdditionalProperties.Structural
}

// ItemOf is the schema of the items of a list or map of objects; nil for anything else.
func ItemOf(s *structuralschema.Structural) *structuralschema.Structural {
	switch values := ValuesOf(s); {
	case s.Items != nil && s.Items.Type == "object":
		return s.Items
	case values != nil && values.Type == "object":
		return values
	}
	return nil
}

// FieldNames are the names of fields that one of several schemas declares, sorted.
func FieldNames(schemas ...*structuralschema.Structural) []string {
	var names []string
	for _, s := range schemas {
		names = slices.AppendSeq(names, maps.Keys(s.Properties))
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// IsSameType reports whether two schemas have the same type, whatever the values of it that they allow.
func IsSameType(a, b *structuralschema.Structural) bool {
	return a.Type == b.Type && a.XIntOrString == b.XIntOrString && (a.Items == nil) == (b.Items == nil) &&
		(ValuesOf(a) == nil) == (ValuesOf(b) == nil)
}

// IsHead reports whether a field is one that every object has at its top, and the API server itself converts.
func IsHead(field string) bool {
	return field == "apiVersion" || field == "kind" || field == "metadata"
}

// Prune removes undeclared fields.
func (v *Version) Prune(obj map[string]any) { pruning.Prune(obj, v.Structural, true) }

// Coerce converts an object to the form in which the API server serves it: it removes undeclared fields, and sets
// defaults. It returns the paths of removed fields.
func (v *Version) Coerce(obj map[string]any) (unknown []string) {
	unknown = pruning.PruneWithOptions(obj, v.Structural, true,
		structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	defaulting.PruneNonNullableNullsWithoutDefaults(obj, v.Structural)
	defaulting.Default(obj, v.Structural)
	return unknown
}

// Validate returns the violations of a new object against its schema, its lists and its rules.
func (v *Version) Validate(ctx context.Context, obj map[string]any) field.ErrorList {
	return v.ValidateWrite(ctx, obj, nil, "", nil)
}

// ValidateWrite adds to errs, the errors in metadata, all other errors of an object. old is the object before the
// write, nil for a new one: unchanged errors in it are accepted. subresource is "status" or "".
func (v *Version) ValidateWrite(
	ctx context.Context, obj, old map[string]any, subresource string, errs field.ErrorList,
) field.ErrorList {
	var before any
	var options []cel.Option
	if old == nil {
		errs = append(errs, crdvalidation.ValidateCustomResource(nil, obj, v.validator)...)
	} else {
		before = old
		correlated := common.NewCorrelatedObject(obj, old, &model.Structural{Structural: v.Structural})
		options = append(options, cel.WithRatcheting(correlated))
		errs = append(errs, v.validateUpdate(obj, old, subresource, correlated)...)
	}
	if subresource == "" {
		errs = append(errs, objectmeta.Validate(ctx, nil, obj, v.Structural, false)...)
	}
	if old == nil || len(listtype.ValidateListSetsAndMaps(nil, v.Structural, old)) == 0 {
		errs = append(errs, listtype.ValidateListSetsAndMaps(nil, v.Structural, obj)...)
	}
	if v.rules == nil {
		return errs
	}
	for _, e := range errs {
		switch e.Type {
		case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong,
			field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
			return append(errs, field.Invalid(nil, nil,
				"some validation rules were not checked because the object was invalid; correct the existing errors to complete "+
					"validation"))
		}
	}
	ruled, _ := v.rules.Validate(ctx, nil, v.Structural, obj, before, celconfig.RuntimeCELCostBudget, options...)
	return append(errs, ruled...)
}

// validateUpdate validates a changed object, or its status, by the schema.
func (v *Version) validateUpdate(
	obj, old map[string]any, subresource string, correlated *common.CorrelatedObject,
) field.ErrorList {
	if subresource == "" {
		return crdvalidation.ValidateCustomResourceUpdate(nil, obj, old, v.validator,
			crdvalidation.WithRatcheting(correlated))
	}
	status, ok := obj["status"]
	if !ok || v.statusValidator == nil {
		return nil
	}
	return crdvalidation.ValidateCustomResourceUpdate(field.NewPath("status"), status, old["status"], v.statusValidator,
		crdvalidation.WithRatcheting(correlated.Key("status")))
}

// structuralOf returns the schema of one version in the internal form of the API server, and as a structural schema.
func structuralOf(
	v *apiextensionsv1.CustomResourceDefinitionVersion,
) (*apiextensions.JSONSchemaProps, *structuralschema.Structural, error) {
	if v.Schema == nil || v.Schema.OpenAPIV3Schema == nil {
		return nil, nil, fmt.Errorf("schema.openAPIV3Schema must be set")
	}
	internal := &apiextensions.JSONSchemaProps{}
	err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(v.Schema.OpenAPIV3Schema,
		internal, nil)
	if err != nil {
		return nil, nil, err
	}
	structural, err := structuralschema.NewStructural(internal)
	if err != nil {
		return nil, nil, err
	}
	if errs := structuralschema.ValidateStructural(field.NewPath("openAPIV3Schema"), structural); len(errs) > 0 {
		return nil, nil, errs.ToAggregate()
	}
	return internal, structural, nil
}
