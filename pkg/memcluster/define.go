package memcluster

import (
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/memcluster/resource"
)

// definer is the field manager of the controllers of CustomResourceDefinitions.
const definer = "kube-apiserver"

// define stores a CustomResourceDefinition whose kinds are served.
func (c *Cluster) define(u *unstructured.Unstructured) error {
	crd, err := resource.ParseDefinition(u)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
		return v.Served
	}) {
		return fmt.Errorf("no version is served: set served: true in one of them")
	}
	if _, err := resource.ResourcesOf(crd); err != nil {
		return err
	}
	crd.Status = apiextensionsv1.CustomResourceDefinitionStatus{}
	resource.AddStoredVersion(crd)
	c.setEstablished(crd)
	stored, err := resource.UnparseDefinition(crd)
	if err != nil {
		return err
	}
	c.put(c.catalog.Resources[resource.DefinitionsResource], stored)
	c.controlDefinition(u.GetName())
	return nil
}

// controlDefinition does the work of the controllers for a CustomResourceDefinition: it serves its kinds, or no longer,
// ends their watches if the definition has changed, and deletes the objects of a definition that is being deleted.
func (c *Cluster) controlDefinition(name string) {
	r := c.catalog.Resources[resource.DefinitionsResource]
	u := c.store.Get(resource.DefinitionsResource.GroupResource(), types.NamespacedName{Name: name})
	if u == nil {
		c.serveKinds(name, nil, nil)
		return
	}
	spec, _ := u.Object["spec"].(map[string]any)
	if !equality.Semantic.DeepEqual(spec, c.served[name]) {
		crd, err := resource.ParseDefinition(u)
		if err != nil {
			panic(fmt.Sprintf("reading a stored CustomResourceDefinition: %v", err)) // it was read before it was stored
		}
		resources, err := resource.ResourcesOf(crd)
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

// serveKinds replaces the kinds that are served for a CustomResourceDefinition by others, and ends the watches of the
// former.
func (c *Cluster) serveKinds(name string, spec map[string]any, resources []*resource.Resource) {
	gr := schema.ParseGroupResource(name) // its name is that of the resource
	c.catalog.Define(gr, resources)
	for _, r := range resources {
		if c.served[name] != nil {
			r.Redefined = c.store.Version
		}
	}
	c.store.EndAll(gr)
	if delete(c.served, name); spec != nil {
		c.served[name] = spec
	}
}

// setEstablished sets the status of a definition whose kinds are served.
func (c *Cluster) setEstablished(crd *apiextensionsv1.CustomResourceDefinition) {
	crd.Status.AcceptedNames = crd.Spec.Names
	setCondition(c.now(), crd, apiextensionsv1.NamesAccepted, apiextensionsv1.ConditionTrue,
		"NoConflicts", "no conflicts found")
	setCondition(c.now(), crd, apiextensionsv1.Established, apiextensionsv1.ConditionTrue, "InitialNamesAccepted",
		"the initial names have been accepted")
}

func setCondition(now metav1.Time, crd *apiextensionsv1.CustomResourceDefinition,
	kind apiextensionsv1.CustomResourceDefinitionConditionType,
	status apiextensionsv1.ConditionStatus, reason, message string,
) {
	condition := apiextensionsv1.CustomResourceDefinitionCondition{Type: kind, Status: status,
		Reason: reason, Message: message,
		LastTransitionTime: now}
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
func (c *Cluster) writeStatus(
	r *resource.Resource, live *unstructured.Unstructured, change func(*apiextensionsv1.CustomResourceDefinition),
) {
	crd, err := resource.ParseDefinition(live)
	if err != nil {
		panic(fmt.Sprintf("reading a stored CustomResourceDefinition: %v", err)) // as above
	}
	change(crd)
	u, err := resource.UnparseDefinition(crd)
	if err != nil || resource.Equal(live, u) {
		return
	}
	// Define records no managers
	if fields, err := r.FieldManager("status"); err == nil && len(live.GetManagedFields()) > 0 {
		u = fields.UpdateNoErrors(live, u, definer).(*unstructured.Unstructured)
	}
	c.store.Finish(r, live, u)
}

// checkTerminating refuses new objects of a kind whose CustomResourceDefinition is being deleted.
func (c *Cluster) checkTerminating(call *call) error {
	gr := call.groupResource()
	definition := c.store.Get(resource.DefinitionsResource.GroupResource(), types.NamespacedName{Name: gr.String()})
	if call.resource.Custom == nil || definition == nil || definition.GetDeletionTimestamp() == nil {
		return nil
	}
	return apierrors.NewForbidden(gr, call.name,
		fmt.Errorf("create not allowed while custom resource definition is terminating"))
}

// deleteDefinition begins the deletion of a CustomResourceDefinition.
func (c *Cluster) deleteDefinition(
	r *resource.Resource, live *unstructured.Unstructured, dryRun bool,
) (*unstructured.Unstructured, error) {
	crd, err := resource.ParseDefinition(live)
	if err != nil {
		return nil, err
	}
	now := c.now()
	crd.DeletionTimestamp = &now
	if !slices.Contains(crd.Finalizers, apiextensionsv1.CustomResourceCleanupFinalizer) {
		crd.Finalizers = append(crd.Finalizers, apiextensionsv1.CustomResourceCleanupFinalizer)
	}
	setCondition(c.now(), crd, apiextensionsv1.Terminating, apiextensionsv1.ConditionTrue, "InstanceDeletionPending",
		"CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon")
	u, err := resource.UnparseDefinition(crd)
	if err != nil || dryRun {
		return u, err
	}
	return c.store.Commit(r, live, u), nil
}

// cleanUp deletes the objects of a CustomResourceDefinition that is being deleted, and then the definition. Finalizers
// hold both.
func (c *Cluster) cleanUp(r *resource.Resource, name string) {
	definition := func() *unstructured.Unstructured {
		return c.store.Get(resource.DefinitionsResource.GroupResource(), types.NamespacedName{Name: name})
	}
	if !slices.Contains(definition().GetFinalizers(), apiextensionsv1.CustomResourceCleanupFinalizer) {
		return
	}
	c.writeStatus(r, definition(), func(crd *apiextensionsv1.CustomResourceDefinition) {
		setCondition(c.now(), crd, apiextensionsv1.Terminating, apiextensionsv1.ConditionTrue, "InstanceDeletionInProgress",
			"CustomResource deletion is in progress")
	})
	gr := schema.ParseGroupResource(name)
	var left []placed
	for _, kind := range c.catalog.Sorted() {
		for _, u := range c.store.Objects[gr] {
			if kind.GVR.GroupResource() == gr && !slices.ContainsFunc(left, func(p placed) bool { return p.object == u }) {
				left = append(left, placed{kind, u})
			}
		}
	}
	slices.SortFunc(left, func(a, b placed) int {
		return strings.Compare(resource.NameOf(a.object).String(), resource.NameOf(b.object).String())
	})
	for _, p := range left {
		if p.object.GetDeletionTimestamp() == nil {
			c.collectDelete(p, metav1.DeletePropagationBackground, "")
		}
	}
	if len(c.store.Objects[gr]) > 0 {
		return
	}
	c.writeStatus(r, definition(), func(crd *apiextensionsv1.CustomResourceDefinition) {
		setCondition(c.now(), crd, apiextensionsv1.Terminating, apiextensionsv1.ConditionFalse,
			"InstanceDeletionCompleted", "removed all instances")
		crd.Finalizers = slices.DeleteFunc(crd.Finalizers, func(f string) bool {
			return f == apiextensionsv1.CustomResourceCleanupFinalizer
		})
	})
	if definition() == nil {
		c.serveKinds(name, nil, nil)
	}
}
