package memcluster

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// definer is the field manager of the controllers of CustomResourceDefinitions.
const definer = "kube-apiserver"

// define stores a CustomResourceDefinition whose kinds are served.
func (c *Cluster) define(u *unstructured.Unstructured) error {
	crd, err := parseDefinition(u)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Served }) {
		return fmt.Errorf("no version is served: set served: true in one of them")
	}
	if _, err := resourcesOf(crd); err != nil {
		return err
	}
	crd.Status = apiextensionsv1.CustomResourceDefinitionStatus{}
	addStoredVersion(crd)
	c.setEstablished(crd)
	stored, err := unparseDefinition(crd)
	if err != nil {
		return err
	}
	c.put(c.resources[definitionsResource], stored)
	c.controlDefinition(u.GetName())
	return nil
}

// unparseDefinition is the inverse of parseDefinition.
func unparseDefinition(crd *apiextensionsv1.CustomResourceDefinition) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(crd)
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	return u, nil
}

// prepareDefinition refuses a CustomResourceDefinition whose kinds cannot be served, and sets status.storedVersions.
func (c *call) prepareDefinition(u *unstructured.Unstructured) error {
	if c.resource.GVR != definitionsResource || c.sub != "" {
		return nil
	}
	crd, err := parseDefinition(u)
	if err != nil {
		return err
	}
	if _, err := resourcesOf(crd); err != nil {
		return invalid(u, field.ErrorList{field.Invalid(field.NewPath("spec"), field.OmitValueType{}, err.Error())})
	}
	addStoredVersion(crd)
	prepared, err := unparseDefinition(crd)
	if err != nil {
		return err
	}
	u.Object["status"] = prepared.Object["status"]
	return nil
}

func addStoredVersion(crd *apiextensionsv1.CustomResourceDefinition) {
	for _, v := range crd.Spec.Versions {
		if v.Storage && !slices.Contains(crd.Status.StoredVersions, v.Name) {
			crd.Status.StoredVersions = append(crd.Status.StoredVersions, v.Name)
		}
	}
}

// controlDefinition does the work of the controllers for a CustomResourceDefinition: it serves its kinds, or no longer, ends their watches
// if the definition has changed, and deletes the objects of a definition that is being deleted.
func (c *Cluster) controlDefinition(name string) {
	r := c.resources[definitionsResource]
	u := c.objects[definitionsResource.GroupResource()][types.NamespacedName{Name: name}]
	if u == nil {
		c.serveKinds(name, nil, nil)
		return
	}
	spec, _ := u.Object["spec"].(map[string]any)
	if !equality.Semantic.DeepEqual(spec, c.served[name]) {
		crd, err := parseDefinition(u)
		if err != nil {
			panic(fmt.Sprintf("reading a stored CustomResourceDefinition: %v", err)) // it was read before it was stored
		}
		resources, err := resourcesOf(crd)
		if err != nil {
			panic(fmt.Sprintf("serving the kinds of a stored CustomResourceDefinition: %v", err)) // it was validated
		}
		c.serveKinds(name, spec, resources)
		c.writeStatus(r, u, c.setEstablished)
	}
	if u.GetDeletionTimestamp() != nil {
		c.cleanUp(r, name)
	}
}

// serveKinds replaces the kinds that are served for a CustomResourceDefinition by others, and ends the watches of the former.
func (c *Cluster) serveKinds(name string, spec map[string]any, resources []*resource) {
	gr := schema.ParseGroupResource(name) // its name is that of the resource
	maps.DeleteFunc(c.resources, func(gvr schema.GroupVersionResource, r *resource) bool {
		return r.custom != nil && gvr.GroupResource() == gr
	})
	for _, r := range resources {
		if c.resources[r.GVR] = r; c.served[name] != nil {
			r.redefined = c.version
		}
	}
	clear(c.documents)
	for w := range c.watches {
		if w.selection.resource.GVR.GroupResource() == gr {
			c.end(w)
		}
	}
	if delete(c.served, name); spec != nil {
		c.served[name] = spec
	}
}

// setEstablished sets the status of a definition whose kinds are served.
func (c *Cluster) setEstablished(crd *apiextensionsv1.CustomResourceDefinition) {
	crd.Status.AcceptedNames = crd.Spec.Names
	c.setCondition(crd, apiextensionsv1.NamesAccepted, apiextensionsv1.ConditionTrue, "NoConflicts", "no conflicts found")
	c.setCondition(crd, apiextensionsv1.Established, apiextensionsv1.ConditionTrue, "InitialNamesAccepted",
		"the initial names have been accepted")
}

func (c *Cluster) setCondition(crd *apiextensionsv1.CustomResourceDefinition, kind apiextensionsv1.CustomResourceDefinitionConditionType,
	status apiextensionsv1.ConditionStatus, reason, message string) {
	condition := apiextensionsv1.CustomResourceDefinitionCondition{Type: kind, Status: status, Reason: reason, Message: message,
		LastTransitionTime: c.now()}
	i := slices.IndexFunc(crd.Status.Conditions, func(have apiextensionsv1.CustomResourceDefinitionCondition) bool {
		return have.Type == kind
	})
	if i < 0 {
		crd.Status.Conditions = append(crd.Status.Conditions, condition)
		return
	}
	if crd.Status.Conditions[i].Status == status {
		condition.LastTransitionTime = crd.Status.Conditions[i].LastTransitionTime
	}
	crd.Status.Conditions[i] = condition
}

// writeStatus changes the status of a CustomResourceDefinition, or its finalizers, as its controllers do.
func (c *Cluster) writeStatus(r *resource, live *unstructured.Unstructured, change func(*apiextensionsv1.CustomResourceDefinition)) {
	crd, err := parseDefinition(live)
	if err != nil {
		panic(fmt.Sprintf("reading a stored CustomResourceDefinition: %v", err)) // as above
	}
	change(crd)
	u, err := unparseDefinition(crd)
	if err != nil || equal(live, u) {
		return
	}
	if fields, err := r.fieldManager("status"); err == nil && len(live.GetManagedFields()) > 0 { // Define records no managers
		u = fields.UpdateNoErrors(live, u, definer).(*unstructured.Unstructured)
	}
	c.finish(r, live, u)
}

// checkTerminating refuses new objects of a kind whose CustomResourceDefinition is being deleted.
func (c *Cluster) checkTerminating(call *call) error {
	gr := call.groupResource()
	definition := c.objects[definitionsResource.GroupResource()][types.NamespacedName{Name: gr.String()}]
	if call.resource.custom == nil || definition == nil || definition.GetDeletionTimestamp() == nil {
		return nil
	}
	return apierrors.NewForbidden(gr, call.name, fmt.Errorf("create not allowed while custom resource definition is terminating"))
}

// deleteDefinition begins the deletion of a CustomResourceDefinition.
func (c *Cluster) deleteDefinition(r *resource, live *unstructured.Unstructured, dryRun bool) (*unstructured.Unstructured, error) {
	crd, err := parseDefinition(live)
	if err != nil {
		return nil, err
	}
	now := c.now()
	crd.DeletionTimestamp = &now
	if !slices.Contains(crd.Finalizers, apiextensionsv1.CustomResourceCleanupFinalizer) {
		crd.Finalizers = append(crd.Finalizers, apiextensionsv1.CustomResourceCleanupFinalizer)
	}
	c.setCondition(crd, apiextensionsv1.Terminating, apiextensionsv1.ConditionTrue, "InstanceDeletionPending",
		"CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon")
	u, err := unparseDefinition(crd)
	if err != nil || dryRun {
		return u, err
	}
	return c.commit(r, live, u), nil
}

// cleanUp deletes the objects of a CustomResourceDefinition that is being deleted, and then the definition. Finalizers hold both.
func (c *Cluster) cleanUp(r *resource, name string) {
	definition := func() *unstructured.Unstructured {
		return c.objects[definitionsResource.GroupResource()][types.NamespacedName{Name: name}]
	}
	if !slices.Contains(definition().GetFinalizers(), apiextensionsv1.CustomResourceCleanupFinalizer) {
		return
	}
	c.writeStatus(r, definition(), func(crd *apiextensionsv1.CustomResourceDefinition) {
		c.setCondition(crd, apiextensionsv1.Terminating, apiextensionsv1.ConditionTrue, "InstanceDeletionInProgress",
			"CustomResource deletion is in progress")
	})
	gr := schema.ParseGroupResource(name)
	var left []placed
	for _, kind := range c.sorted() {
		for _, u := range c.objects[gr] {
			if kind.GVR.GroupResource() == gr && !slices.ContainsFunc(left, func(p placed) bool { return p.object == u }) {
				left = append(left, placed{kind, u})
			}
		}
	}
	slices.SortFunc(left, func(a, b placed) int { return strings.Compare(nameOf(a.object).String(), nameOf(b.object).String()) })
	for _, p := range left {
		if p.object.GetDeletionTimestamp() == nil {
			c.collectDelete(p, metav1.DeletePropagationBackground, "")
		}
	}
	if len(c.objects[gr]) > 0 {
		return
	}
	c.writeStatus(r, definition(), func(crd *apiextensionsv1.CustomResourceDefinition) {
		c.setCondition(crd, apiextensionsv1.Terminating, apiextensionsv1.ConditionFalse, "InstanceDeletionCompleted", "removed all instances")
		crd.Finalizers = slices.DeleteFunc(crd.Finalizers, func(f string) bool { return f == apiextensionsv1.CustomResourceCleanupFinalizer })
	})
	if definition() == nil {
		c.serveKinds(name, nil, nil)
	}
}
