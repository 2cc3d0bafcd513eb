package memcluster

import (
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/corollary-dev/corollary/pkg/kinds"
)

// custom is what only a custom kind has.
type custom struct {
	// structural and schemas are by version: the same, in the form of the API server and in that of OpenAPI.
	structural         map[string]*structuralschema.Structural
	schemas            map[string]*spec.Schema
	validator, ofState crdvalidation.SchemaValidator // of the object and of its status
	rules              *cel.Validator                // nil without x-kubernetes-validations
}

// readDefinition returns a CustomResourceDefinition as it is stored once its kinds are served, and the kinds.
func readDefinition(u *unstructured.Unstructured, now metav1.Time) (*unstructured.Unstructured, []*resource, error) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, crd); err != nil {
		return nil, nil, err
	}
	apiextensionsv1.SetDefaults_CustomResourceDefinition(crd)
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&crd.Spec)
	if c := crd.Spec.Conversion; c != nil && c.Strategy != apiextensionsv1.NoneConverter {
		return nil, nil, unsupported("conversion by webhooks")
	}
	served, err := kinds.Defined(crd)
	if err != nil {
		return nil, nil, err
	}
	if len(served) == 0 {
		return nil, nil, fmt.Errorf("it serves no version")
	}
	shared := custom{structural: map[string]*structuralschema.Structural{}, schemas: map[string]*spec.Schema{}}
	for _, k := range served {
		shared.schemas[k.GVK.Version] = k.Schema
	}
	var resources []*resource
	for _, k := range served {
		own := shared
		if err := own.read(crd, k.GVK.Version); err != nil {
			return nil, nil, fmt.Errorf("version %s: %w", k.GVK.Version, err)
		}
		resources = append(resources, &resource{Kind: *k, singular: crd.Spec.Names.Singular, list: crd.Spec.Names.ListKind, custom: &own,
			managers: map[string]*managedfields.FieldManager{}})
	}
	establish(crd, now)
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(crd)
	if err != nil {
		return nil, nil, err
	}
	stored := &unstructured.Unstructured{Object: content}
	stored.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	return stored, resources, nil
}

// read makes of the schema of one version what the API server makes of it.
func (c *custom) read(crd *apiextensionsv1.CustomResourceDefinition, version string) error {
	for i := range crd.Spec.Versions {
		v := &crd.Spec.Versions[i]
		if v.Name != version {
			continue
		}
		switch {
		case v.Subresources != nil && v.Subresources.Scale != nil:
			// Only the subresource itself is missing, which a request for it is told.
		case len(v.SelectableFields) > 0:
			return unsupported("selectableFields")
		}
		internal := &apiextensions.JSONSchemaProps{}
		if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(
			v.Schema.OpenAPIV3Schema,
			internal,
			nil,
		); err != nil {
			return err
		}
		s, err := structuralschema.NewStructural(internal)
		if err != nil {
			return err
		}
		if err := defaulting.PruneDefaults(s); err != nil {
			return err
		}
		c.structural[version] = s
		if c.validator, _, err = crdvalidation.NewSchemaValidator(internal); err != nil {
			return err
		}
		if state, ok := internal.Properties["status"]; ok {
			if c.ofState, _, err = crdvalidation.NewSchemaValidator(&state); err != nil {
				return err
			}
		}
		c.rules = cel.NewValidator(s, true, celconfig.PerCallLimit)
	}
	return nil
}

// establish gives a definition the status that it has once its kinds are served.
func establish(crd *apiextensionsv1.CustomResourceDefinition, now metav1.Time) {
	crd.Status = apiextensionsv1.CustomResourceDefinitionStatus{AcceptedNames: crd.Spec.Names}
	for _, v := range crd.Spec.Versions {
		if v.Storage {
			crd.Status.StoredVersions = []string{v.Name}
		}
	}
	for condition, reason := range map[apiextensionsv1.CustomResourceDefinitionConditionType]string{
		apiextensionsv1.NamesAccepted: "NoConflicts", apiextensionsv1.Established: "InitialNamesAccepted"} {
		crd.Status.Conditions = append(crd.Status.Conditions, apiextensionsv1.CustomResourceDefinitionCondition{
			Type: condition, Status: apiextensionsv1.ConditionTrue, Reason: reason, LastTransitionTime: now})
	}
}
