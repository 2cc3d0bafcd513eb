package memcluster

import (
	"context"
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apiserver/validation"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/common"
)

// coerce brings a custom resource into the form of its schema as the API server does when it reads one: metadata is what
// metav1.ObjectMeta can hold, fields that are not declared are dropped, and defaults are filled in. It returns the paths of
// what was dropped.
func (r *resource) coerce(u *unstructured.Unstructured) (unknown []string, err error) {
	apiVersion, kind := u.Object["apiVersion"], u.Object["kind"]
	meta, found, unknown, err := objectmeta.GetObjectMetaWithOptions(u.Object, objectmeta.ObjectMetaOptions{ReturnUnknownFieldPaths: true})
	if err != nil {
		return nil, err
	}
	s := r.custom.structural[r.GVK.Version]
	unknown = append(
		unknown,
		pruning.PruneWithOptions(u.Object, s, true, structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})...)
	defaulting.PruneNonNullableNullsWithoutDefaults(u.Object, s)
	coerced, paths := objectmeta.CoerceWithOptions(nil, u.Object, s, false, objectmeta.CoerceOptions{ReturnUnknownFieldPaths: true})
	if coerced != nil {
		return nil, coerced
	}
	u.Object["apiVersion"], u.Object["kind"] = apiVersion, kind
	if found {
		if err := objectmeta.SetObjectMeta(u.Object, meta); err != nil {
			return nil, err
		}
	}
	defaulting.Default(u.Object, s)
	return append(unknown, paths...), nil
}

// validate adds to errs what is wrong with a custom resource by its schema, its lists and its rules. old is nil for a new one.
func (r *resource) validate(ctx context.Context, u, old *unstructured.Unstructured, sub string, errs field.ErrorList) field.ErrorList {
	s := r.custom.structural[r.GVK.Version]
	var before any
	var options []cel.Option
	if u.GetAPIVersion() != r.GVK.GroupVersion().String() {
		return field.ErrorList{field.Invalid(field.NewPath("apiVersion"), u.GetAPIVersion(), "must be "+r.GVK.GroupVersion().String())}
	}
	if u.GetKind() != r.GVK.Kind {
		return field.ErrorList{field.Invalid(field.NewPath("kind"), u.GetKind(), "must be "+r.GVK.Kind)}
	}
	if old == nil {
		errs = append(errs, crdvalidation.ValidateCustomResource(nil, u.Object, r.custom.validator)...)
	} else {
		before = old.Object
		correlated := common.NewCorrelatedObject(u.Object, old.Object, &model.Structural{Structural: s})
		options = append(options, cel.WithRatcheting(correlated))
		errs = append(errs, r.validateUpdate(u, old, sub, correlated)...)
	}
	if sub == "" {
		errs = append(errs, objectmeta.Validate(ctx, nil, u.Object, s, false)...)
	}
	if old == nil || len(listtype.ValidateListSetsAndMaps(nil, s, old.Object)) == 0 {
		errs = append(errs, listtype.ValidateListSetsAndMaps(nil, s, u.Object)...)
	}
	if r.custom.rules == nil {
		return errs
	}
	for _, e := range errs {
		switch e.Type {
		case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
			return append(errs, field.Invalid(nil, nil,
				"some validation rules were not checked because the object was invalid; correct the existing errors to complete validation"))
		}
	}
	ruled, _ := r.custom.rules.Validate(ctx, nil, s, u.Object, before, celconfig.RuntimeCELCostBudget, options...)
	return append(errs, ruled...)
}

// validateUpdate passes over what was wrong before and has not been changed.
func (r *resource) validateUpdate(u, old *unstructured.Unstructured, sub string, correlated *common.CorrelatedObject) field.ErrorList {
	if sub == "" {
		return crdvalidation.ValidateCustomResourceUpdate(nil, u.Object, old.Object, r.custom.validator, crdvalidation.WithRatcheting(correlated))
	}
	state, ok := u.Object["status"]
	if !ok || r.custom.ofState == nil {
		return nil
	}
	return crdvalidation.ValidateCustomResourceUpdate(field.NewPath("status"), state, old.Object["status"], r.custom.ofState,
		crdvalidation.WithRatcheting(correlated.Key("status")))
}

// view returns an object as a resource shows it, which may be of another version than the one that it was written at. The
// result must not be changed.
func (r *resource) view(u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if u == nil || u.GetAPIVersion() == r.GVK.GroupVersion().String() {
		return u, nil
	}
	if r.custom == nil {
		return nil, unsupported(fmt.Sprintf("reading as %s a %s that was written as %s", r.GVK.GroupVersion(), u.GetKind(), u.GetAPIVersion()))
	}
	u = u.DeepCopy()
	u.SetAPIVersion(r.GVK.GroupVersion().String())
	_, err := r.coerce(u)
	return u, err
}
