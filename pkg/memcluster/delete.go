package memcluster

import (
	"fmt"
	"net/http"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/corollary-dev/corollary/pkg/memcluster/answers"
	"github.com/corollary-dev/corollary/pkg/memcluster/resource"
)

// delete handles a DELETE of one object. There is no graceful deletion: an object without finalizers is gone at once,
// like a Pod without a node.
func (c *Cluster) delete(call *call) (any, int, error) {
	o, err := call.deleteOptions()
	if err != nil {
		return nil, 0, err
	}
	r := call.resource
	live, err := c.live(call)
	if err != nil {
		return nil, 0, err
	}
	if err := checkPreconditions(r, live, o.Preconditions); err != nil {
		return nil, 0, err
	}
	if r.GVR == resource.DefinitionsResource && live.GetDeletionTimestamp() == nil {
		u, err := c.deleteDefinition(r, live, len(o.DryRun) > 0)
		return u, http.StatusOK, err
	}
	u := live.DeepCopy()
	u.SetFinalizers(r.DeletionFinalizers(u.GetFinalizers(), o))
	if len(u.GetFinalizers()) == 0 && !r.IsNamespace() {
		if len(o.DryRun) == 0 {
			c.store.Remove(r, live)
		}
		if resource.ReturnedOnDelete.Has(r.GVK.Kind) && r.Custom == nil {
			return live, http.StatusOK, nil
		}
		return &metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusSuccess,
			Details: &metav1.StatusDetails{Name: call.name, Group: r.GVR.Group, Kind: r.GVR.Resource,
				UID: live.GetUID()}}, http.StatusOK, nil
	}
	c.markDeleted(r, u)
	code := http.StatusOK
	if orphan := o.OrphanDependents; orphan != nil && !*orphan { //nolint:staticcheck // clients still send it
		code = http.StatusAccepted
	}
	if len(o.DryRun) > 0 {
		return u, code, nil
	}
	return c.store.CommitChange(r, live, u), code, nil
}

// deleteAll handles a DELETE of a collection: of what a list with the same parameters has.
func (c *Cluster) deleteAll(call *call) (any, int, error) {
	_, selected, err := call.listOptions()
	if err != nil {
		return nil, 0, err
	}
	objects, err := c.store.At(selected, c.store.Version)
	if err != nil {
		return nil, 0, err
	}
	out := &answers.List{TypeMeta: call.resource.TypeMeta(), Items: []map[string]any{}}
	out.Kind, out.Metadata.ResourceVersion = call.resource.List, strconv.FormatUint(c.store.Version, 10)
	if call.resource.Custom != nil {
		out.Metadata.Continue = new(string)
	}
	for _, u := range objects {
		one := *call
		one.namespace, one.name = u.GetNamespace(), u.GetName()
		if _, _, err := c.delete(&one); err != nil {
			return nil, 0, err
		}
		out.Items = append(out.Items, call.resource.Item(u))
	}
	return out, http.StatusOK, nil
}

// deleteOptions are in the body or in the parameters.
func (c *call) deleteOptions() (*metav1.DeleteOptions, error) {
	o := &metav1.DeleteOptions{}
	if len(c.body) > 0 {
		if err := yaml.Unmarshal(c.body, o); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
	} else if err := metav1.Convert_url_Values_To_v1_DeleteOptions(&c.query, o, nil); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if errs := validation.ValidateDeleteOptions(o); len(errs) > 0 {
		return nil, apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "DeleteOptions"}, "", errs)
	}
	return o, nil
}

func checkPreconditions(r *resource.Resource, live *unstructured.Unstructured, p *metav1.Preconditions) error {
	kind := schema.GroupResource{Group: r.GVK.Group, Resource: r.GVK.Kind}
	if p != nil && p.UID != nil && *p.UID != live.GetUID() {
		return apierrors.NewConflict(kind, live.GetName(),
			fmt.Errorf("the UID in the precondition (%s) does not match the UID in record (%s). "+
				"The object might have been deleted and then recreated", *p.UID, live.GetUID()))
	}
	if p != nil && p.ResourceVersion != nil && *p.ResourceVersion != live.GetResourceVersion() {
		return apierrors.NewConflict(kind, live.GetName(),
			fmt.Errorf("the ResourceVersion in the precondition (%s) does not match the "+
				"ResourceVersion in record (%s). The object might have been modified",
				*p.ResourceVersion, live.GetResourceVersion()))
	}
	return nil
}

// markDeleted makes an object terminating.
func (c *Cluster) markDeleted(r *resource.Resource, u *unstructured.Unstructured) {
	if u.GetDeletionTimestamp() != nil {
		return
	}
	if u.GetGeneration() > 0 {
		u.SetGeneration(u.GetGeneration() + 1)
	}
	deleted, seconds := c.now(), int64(0)
	u.SetDeletionTimestamp(&deleted)
	if r.IsNamespace() {
		u.Object["status"] = map[string]any{"phase": string(corev1.NamespaceTerminating)}
		return
	}
	u.SetDeletionGracePeriodSeconds(&seconds)
}
