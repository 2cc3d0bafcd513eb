package memcluster

import (
	"fmt"
	"net/http"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/corollary-dev/corollary/pkg/memcluster/answers"
	"github.com/corollary-dev/corollary/pkg/memcluster/resource"
)

// create handles a POST.
func (c *Cluster) create(call *call) (any, int, error) {
	u, o, err := call.read("CreateOptions")
	if err != nil {
		return nil, 0, err
	}
	if call.resource.Namespaced && u.GetNamespace() != "" && u.GetNamespace() != call.namespace {
		return nil, 0, call.checkNames("", u.GetNamespace())
	}
	resource.ClearSystem(u)
	u.SetNamespace(call.namespace)
	none, err := call.resource.Blank()
	if err != nil {
		return nil, 0, err
	}
	if u, err = call.updateManagedFields(none, u, o); err != nil {
		return nil, 0, err
	}
	if call.resource.AsksForRights() {
		return u, http.StatusCreated, unstructured.SetNestedField(u.Object, true, "status", "allowed")
	}
	call.name = u.GetName()
	if prefix := u.GetGenerateName(); call.name == "" && prefix != "" {
		call.name = c.ids.generateName(prefix)
		u.SetName(call.name)
	}
	if u.GetResourceVersion() != "" {
		return nil, 0, fmt.Errorf("resourceVersion should not be set on objects to be created")
	}
	out, err := c.insert(call, u, o)
	return out, http.StatusCreated, err
}

// updateManagedFields makes the field manager the owner of fields that differ from the live object.
func (c *call) updateManagedFields(live, u *unstructured.Unstructured, o options) (*unstructured.Unstructured, error) {
	fields, err := c.resource.FieldManager(c.sub)
	if err != nil {
		return nil, err
	}
	resource.DedupOwners(u)
	return fields.UpdateNoErrors(live, u, o.manager).(*unstructured.Unstructured), nil
}

// insert stores a new object.
func (c *Cluster) insert(call *call, u *unstructured.Unstructured, o options) (*unstructured.Unstructured, error) {
	if err := c.checkNamespace(call); err != nil {
		return nil, err
	}
	if err := c.checkTerminating(call); err != nil {
		return nil, err
	}
	r := call.resource
	resource.ClearSystem(u)
	u.SetUID(c.ids.newUID())
	u.SetCreationTimestamp(c.now())
	u.SetSelfLink("")
	if r.HasStatus {
		r.ClearStatus(u)
	}
	if r.HasGeneration() {
		u.SetGeneration(1)
	}
	resource.InitNamespace(r, u)
	if err := r.PrepareDefinition(u, call.sub); err != nil {
		return nil, err
	}
	if errs := r.ValidateNew(call.http.Context(), u); len(errs) > 0 {
		return nil, resource.Invalid(u, errs)
	}
	if there := c.store.Get(call.resource.Stored(), call.at()); there != nil {
		err := apierrors.NewAlreadyExists(call.groupResource(), call.name)
		if there.GetDeletionTimestamp() != nil {
			err.ErrStatus.Message = "object is being deleted: " + err.ErrStatus.Message
		}
		return nil, err
	}
	u.SetResourceVersion("")
	if r.DropEmptyLists(u); o.dryRun {
		return u, nil
	}
	if err := call.checkSize(u); err != nil {
		return nil, err
	}
	return c.store.Commit(r, nil, u), nil
}

// checkNamespace refuses new objects in a namespace that does not exist or is terminating.
func (c *Cluster) checkNamespace(call *call) error {
	if !call.resource.Namespaced {
		return nil
	}
	namespace := c.store.Get(corev1.Resource("namespaces"), types.NamespacedName{Name: call.namespace})
	if namespace == nil && c.anyNamespace {
		return nil
	}
	if namespace == nil {
		return apierrors.NewNotFound(corev1.Resource("namespaces"), call.namespace)
	}
	if namespace.GetDeletionTimestamp() == nil {
		return nil
	}
	err := apierrors.NewForbidden(call.groupResource(), call.name,
		fmt.Errorf("unable to create new content in namespace %s because it is being terminated", call.namespace))
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes,
		metav1.StatusCause{Type: corev1.NamespaceTerminatingCause,
			Message: fmt.Sprintf("namespace %s is being terminated", call.namespace), Field: "metadata.namespace"})
	return err
}

// update handles a PUT.
func (c *Cluster) update(call *call) (any, int, error) {
	u, o, err := call.read("UpdateOptions")
	if err != nil {
		return nil, 0, err
	}
	if u.GetNamespace() == "" || !call.resource.Namespaced {
		u.SetNamespace(call.namespace)
	}
	if err := call.checkNames(u.GetName(), u.GetNamespace()); err != nil {
		return nil, 0, err
	}
	live, err := c.live(call)
	if err != nil {
		return nil, 0, err
	}
	if uid := u.GetUID(); uid != "" && uid != live.GetUID() {
		return nil, 0, apierrors.NewConflict(call.groupResource(), call.name,
			fmt.Errorf("the UID in the precondition (%s) does not match the UID in record (%s)", uid, live.GetUID()))
	}
	if u, err = call.updateManagedFields(live, u, o); err != nil {
		return nil, 0, err
	}
	out, err := c.replace(call, live, u, o)
	return out, http.StatusOK, err
}

// live returns the object of a call, at the version of the call.
func (c *Cluster) live(call *call) (*unstructured.Unstructured, error) {
	stored := c.store.Get(call.resource.Stored(), call.at())
	if stored == nil {
		return nil, apierrors.NewNotFound(call.groupResource(), call.name)
	}
	return call.resource.View(stored)
}

// replace replaces the live object by u, if u is valid.
func (c *Cluster) replace(
	call *call, live, u *unstructured.Unstructured, o options,
) (*unstructured.Unstructured, error) {
	r := call.resource
	if version := u.GetResourceVersion(); version == "" || version == "0" {
		if r.RequiresVersion() {
			return nil, apierrors.NewInvalid(schema.GroupKind{Group: r.GVR.Group,
				Kind: r.GVR.Resource}, call.name, field.ErrorList{
				field.Invalid(field.NewPath("metadata", "resourceVersion"), 0, "must be specified for an update")})
		}
		u.SetResourceVersion(live.GetResourceVersion())
	} else if _, err := strconv.ParseUint(version, 10, 64); err != nil {
		return nil, err
	} else if version != live.GetResourceVersion() {
		return nil, apierrors.NewConflict(call.groupResource(), call.name,
			fmt.Errorf("the object has been modified; please apply your changes to the latest version and try again"))
	}
	resource.DedupOwners(u)
	u = r.PrepareUpdate(u, live, call.sub)
	if err := r.PrepareDefinition(u, call.sub); err != nil {
		return nil, err
	}
	if errs := r.ValidateUpdate(call.http.Context(), call.sub, u, live); len(errs) > 0 {
		return nil, resource.Invalid(u, errs)
	}
	resource.KeepTimes(u, live)
	if r.DropEmptyLists(u); o.dryRun {
		return u, nil
	}
	if err := call.checkSize(u); err != nil {
		return nil, err
	}
	return c.store.Finish(r, live, u), nil
}

// The limits of etcd for a request. An object grows beyond it by a large request, so others are not measured.
const maxSize, largeRequest = 3 << 19, 1 << 16

// checkSize refuses an object that etcd would not store.
func (c *call) checkSize(u *unstructured.Unstructured) error {
	if len(c.body) < largeRequest || len(answers.Encode(u)) <= maxSize {
		return nil
	}
	return fmt.Errorf("etcdserver: request is too large")
}
