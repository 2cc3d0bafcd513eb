package resource

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/memcluster/answers"
)

// ParseDefinition parses a CustomResourceDefinition and sets its defaults.
func ParseDefinition(u *unstructured.Unstructured) (*apiextensionsv1.CustomResourceDefinition, error) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, crd); err != nil {
		return nil, err
	}
	apiextensionsv1.SetDefaults_CustomResourceDefinition(crd)
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&crd.Spec)
	return crd, checkSupported(crd)
}

// ResourcesOf returns the kinds that a CustomResourceDefinition serves.
func ResourcesOf(crd *apiextensionsv1.CustomResourceDefinition) ([]*Resource, error) {
	served, err := kinds.Defined(crd)
	if err != nil {
		return nil, err
	}
	versions, err := kinds.Versions(crd)
	if err != nil {
		return nil, err
	}
	var resources []*Resource
	for _, k := range served {
		version := slices.IndexFunc(versions, func(v *kinds.Version) bool { return v.Name == k.GVR.Version })
		defined := slices.IndexFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
			return v.Name == k.GVR.Version
		})
		names := crd.Spec.Names
		resources = append(resources, &Resource{Kind: *k, Singular: names.Singular, List: names.ListKind,
			Short: names.ShortNames, Categories: names.Categories, Custom: versions[version], versions: versions,
			columns:  crd.Spec.Versions[defined].AdditionalPrinterColumns,
			managers: map[string]*managedfields.FieldManager{}})
	}
	return resources, nil
}

func checkSupported(crd *apiextensionsv1.CustomResourceDefinition) error {
	if c := crd.Spec.Conversion; c != nil && c.Strategy != apiextensionsv1.NoneConverter {
		return answers.Unsupported("conversion by webhooks")
	}
	for _, v := range crd.Spec.Versions {
		if v.Served && len(v.SelectableFields) > 0 {
			return fmt.Errorf("version %s: %w", v.Name, answers.Unsupported("selectableFields"))
		}
	}
	return nil
}

// coerce converts a custom resource to its schema, as the API server does when it reads one: metadata is reduced to
// metav1.ObjectMeta, undeclared fields are removed, and defaults are set. It returns the paths of removed fields.
func (r *Resource) coerce(u *unstructured.Unstructured) (unknown []string, err error) {
	apiVersion, kind := u.Object["apiVersion"], u.Object["kind"]
	meta, found, unknown, err := objectmeta.GetObjectMetaWithOptions(u.Object,
		objectmeta.ObjectMetaOptions{ReturnUnknownFieldPaths: true})
	if err != nil {
		return nil, err
	}
	unknown = append(unknown, r.Custom.Coerce(u.Object)...)
	invalid, paths := objectmeta.CoerceWithOptions(nil, u.Object, r.Custom.Structural, false,
		objectmeta.CoerceOptions{ReturnUnknownFieldPaths: true})
	if invalid != nil {
		return nil, invalid
	}
	u.Object["apiVersion"], u.Object["kind"] = apiVersion, kind
	if found {
		if err := objectmeta.SetObjectMeta(u.Object, meta); err != nil {
			return nil, err
		}
	}
	return append(unknown, paths...), nil
}

// validate adds the errors of a custom resource to errs. old is nil for a new one.
func (r *Resource) validate(
	ctx context.Context, sub string, u, old *unstructured.Unstructured, errs field.ErrorList,
) field.ErrorList {
	if u.GetAPIVersion() != r.GVK.GroupVersion().String() {
		return field.ErrorList{field.Invalid(field.NewPath("apiVersion"), u.GetAPIVersion(),
			"must be "+r.GVK.GroupVersion().String())}
	}
	if u.GetKind() != r.GVK.Kind {
		return field.ErrorList{field.Invalid(field.NewPath("kind"), u.GetKind(), "must be "+r.GVK.Kind)}
	}
	var before map[string]any
	if old != nil {
		before = old.Object
	}
	return r.Custom.ValidateWrite(ctx, u.Object, before, sub, errs)
}

// isOlder reports whether an object was written before the definition of its kind was changed.
func (r *Resource) isOlder(u *unstructured.Unstructured) bool {
	written, err := strconv.ParseUint(u.GetResourceVersion(), 10, 64)
	return err == nil && written < r.Redefined
}

// View returns an object at the version and with the schema of the resource, which may differ from those of its last
// write. The result must not be changed.
func (r *Resource) View(u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if u == nil || u.GetAPIVersion() == r.GVK.GroupVersion().String() && !r.isOlder(u) {
		return u, nil
	}
	if r.isEvent() {
		return r.viewEvent(u), nil
	}
	if r.Custom == nil {
		return nil, answers.Unsupported(fmt.Sprintf("reading as %s a %s that was written as %s",
			r.GVK.GroupVersion(), u.GetKind(), u.GetAPIVersion()))
	}
	u = u.DeepCopy()
	u.SetAPIVersion(r.GVK.GroupVersion().String())
	_, err := r.coerce(u)
	return u, err
}

// UnparseDefinition is the inverse of parseDefinition.
func UnparseDefinition(crd *apiextensionsv1.CustomResourceDefinition) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(crd)
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	return u, nil
}

// PrepareDefinition refuses a CustomResourceDefinition whose kinds cannot be served, and sets status.storedVersions.
func (r *Resource) PrepareDefinition(u *unstructured.Unstructured, sub string) error {
	if r.GVR != DefinitionsResource || sub != "" {
		return nil
	}
	crd, err := ParseDefinition(u)
	if err != nil {
		return err
	}
	if _, err := ResourcesOf(crd); err != nil {
		return Invalid(u, field.ErrorList{field.Invalid(field.NewPath("spec"), field.OmitValueType{}, err.Error())})
	}
	AddStoredVersion(crd)
	prepared, err := UnparseDefinition(crd)
	if err != nil {
		return err
	}
	u.Object["status"] = prepared.Object["status"]
	return nil
}

// AddStoredVersion notes that objects may be stored in the storage version from now on.
func AddStoredVersion(crd *apiextensionsv1.CustomResourceDefinition) {
	for _, v := range crd.Spec.Versions {
		if v.Storage && !slices.Contains(crd.Status.StoredVersions, v.Name) {
			crd.Status.StoredVersions = append(crd.Status.StoredVersions, v.Name)
		}
	}
}

// Invalid refuses an object for errors in its fields.
func Invalid(u *unstructured.Unstructured, errs field.ErrorList) error {
	return apierrors.NewInvalid(u.GroupVersionKind().GroupKind(), u.GetName(), errs)
}
