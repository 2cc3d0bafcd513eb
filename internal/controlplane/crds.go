package controlplane

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/wait"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

// crdTimeout limits the wait for one CRD.
const crdTimeout = 2 * time.Minute

var crds = apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions")

// InstallCRDs creates or updates the CustomResourceDefinitions in the YAML texts and returns once every served version
// can be used: it is in both forms of discovery, its OpenAPI document is published (server-side apply and clients read
// it), and it can be listed.
func InstallCRDs(ctx context.Context, config *rest.Config, texts ...string) error {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("creating a client for CRDs: %w", err)
	}
	var installed []*apiextensionsv1.CustomResourceDefinition
	for _, text := range texts {
		documents, err := Documents(text)
		if err != nil {
			return fmt.Errorf("reading CRDs: %w", err)
		}
		for _, document := range documents {
			crd, err := installCRD(ctx, client, document)
			if err != nil {
				return err
			}
			installed = append(installed, crd)
		}
	}
	for _, crd := range installed {
		if err := waitForCRD(ctx, config, client, crd); err != nil {
			return err
		}
	}
	return nil
}

// Documents splits a YAML text into its documents, without empty ones.
func Documents(text string) ([]*unstructured.Unstructured, error) {
	var documents []*unstructured.Unstructured
	reader := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text)))
	for {
		data, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return documents, nil
		}
		if err != nil {
			return nil, fmt.Errorf("splitting YAML documents: %w", err)
		}
		object, err := parse(data)
		if err != nil {
			return nil, fmt.Errorf("parsing YAML document %d: %w", len(documents)+1, err)
		}
		if len(object) > 0 {
			documents = append(documents, &unstructured.Unstructured{Object: object})
		}
	}
}

// parse parses one YAML document; whole numbers become int64, as in unstructured objects.
func parse(data []byte) (map[string]any, error) {
	data, err := yaml.YAMLToJSON(data)
	if err != nil {
		return nil, err
	}
	object := map[string]any{}
	return object, utiljson.Unmarshal(data, &object)
}

// installCRD applies one CRD.
func installCRD(ctx context.Context, client dynamic.Interface,
	object *unstructured.Unstructured) (*apiextensionsv1.CustomResourceDefinition, error) {
	if kind := object.GetKind(); kind != "CustomResourceDefinition" {
		return nil, fmt.Errorf("installing CRDs: the document %s is a %s", object.GetName(), kind)
	}
	applied, err := client.Resource(crds).Apply(ctx, object.GetName(), object,
		metav1.ApplyOptions{FieldManager: "test", Force: true})
	if err != nil {
		return nil, fmt.Errorf("installing CRD %s: %w", object.GetName(), err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(applied.Object, crd); err != nil {
		return nil, fmt.Errorf("reading CRD %s: %w", object.GetName(), err)
	}
	return crd, nil
}

// waitForCRD waits until every served version of the CRD can be used.
func waitForCRD(
	ctx context.Context, config *rest.Config, client dynamic.Interface, crd *apiextensionsv1.CustomResourceDefinition,
) error {
	finder, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return fmt.Errorf("creating a discovery client: %w", err)
	}
	for _, version := range crd.Spec.Versions {
		if !version.Served {
			continue
		}
		var last error
		err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, crdTimeout, true,
			func(ctx context.Context) (bool, error) {
				last = served(ctx, finder, client, crd, version.Name)
				return last == nil, nil
			})
		if err != nil {
			return fmt.Errorf("waiting for CRD %s, version %s: %w", crd.Name, version.Name, errors.Join(err, last))
		}
	}
	return nil
}

// served returns nil when the version of the CRD can be used.
func served(ctx context.Context, finder *discovery.DiscoveryClient, client dynamic.Interface,
	crd *apiextensionsv1.CustomResourceDefinition,
	version string) error {
	gv := crd.Spec.Group + "/" + version
	resources, err := finder.ServerResourcesForGroupVersion(gv)
	if err != nil {
		return fmt.Errorf("reading discovery: %w", err)
	}
	if !listed(resources, crd.Spec.Names.Plural) {
		return fmt.Errorf("reading discovery: %s does not list %s yet", gv, crd.Spec.Names.Plural)
	}
	document, err := finder.RESTClient().Get().AbsPath("/openapi/v3/apis/" + gv).DoRaw(ctx)
	if err != nil {
		return fmt.Errorf("reading OpenAPI: %w", err)
	}
	if !strings.Contains(string(document), `"kind":"`+crd.Spec.Names.Kind+`"`) {
		return fmt.Errorf("reading OpenAPI: the document of %s has no %s yet", gv, crd.Spec.Names.Kind)
	}
	gvr := schema.GroupVersionResource{Group: crd.Spec.Group, Version: version, Resource: crd.Spec.Names.Plural}
	if _, err := client.Resource(gvr).List(ctx, metav1.ListOptions{Limit: 1}); err != nil && !apierrors.IsForbidden(err) {
		return fmt.Errorf("listing %s: %w", gvr.Resource, err)
	}
	return discovered(finder, gvr)
}

// discovered returns nil if the aggregated discovery has the resource: clients that look up kinds read it, and another
// part of the API server writes it than the list of the version.
func discovered(finder *discovery.DiscoveryClient, gvr schema.GroupVersionResource) error {
	_, all, _, err := finder.GroupsAndMaybeResources()
	if err != nil {
		return fmt.Errorf("reading all of discovery: %w", err)
	}
	if resources := all[gvr.GroupVersion()]; resources == nil || !listed(resources, gvr.Resource) {
		return fmt.Errorf("reading all of discovery: it does not list %s yet", gvr)
	}
	return nil
}

// listed reports whether discovery lists the resource.
func listed(resources *metav1.APIResourceList, plural string) bool {
	for _, resource := range resources.APIResources {
		if resource.Name == plural {
			return true
		}
	}
	return false
}
