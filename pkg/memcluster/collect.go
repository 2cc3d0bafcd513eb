package memcluster

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/memcluster/resource"
)

// collector is the field manager of the garbage collector.
const collector = "kube-controller-manager"

// CollectGarbage does the work of kube-controller-manager's garbage collector and namespace controller until nothing is
// left to do, and returns one line for each write.
func (c *Cluster) CollectGarbage() []string {
	c.store.Lock()
	defer c.store.Unlock()
	var done []string
	for {
		before := len(done)
		for _, at := range c.all() {
			if did := c.collectOne(at); did != "" {
				done = append(done, did+" "+at.resource.GVR.GroupResource().
					String()+" "+strings.TrimPrefix(resource.NameOf(at.object).String(), "/"))
			}
		}
		if len(done) == before {
			return done
		}
	}
}

// placed is an object with a resource that serves it.
type placed struct {
	resource *resource.Resource
	object   *unstructured.Unstructured
}

// all returns every object, in the same order in every run.
func (c *Cluster) all() []placed {
	var out []placed
	for _, objects := range c.store.Objects {
		for _, u := range objects {
			if r := c.catalog.ResourceOf(u.GroupVersionKind()); r != nil {
				out = append(out, placed{r, u})
			}
		}
	}
	slices.SortStableFunc(out, func(a, b placed) int {
		return strings.Compare(
			a.resource.GVR.GroupResource().String()+" "+resource.NameOf(a.object).String(),
			b.resource.GVR.GroupResource().String()+" "+resource.NameOf(b.object).String(),
		)
	})
	return out
}

// collectOne does the next step for one object, and returns what it did, or "".
func (c *Cluster) collectOne(at placed) string {
	u := c.store.Get(at.resource.Stored(), resource.NameOf(at.object))
	if u == nil || u.GetUID() != at.object.GetUID() {
		return ""
	}
	at.object = u
	switch {
	case u.GetDeletionTimestamp() == nil:
	case at.resource.IsNamespace():
		return c.collectNamespace(at)
	case at.resource.GVR == resource.DefinitionsResource &&
		len(c.store.Objects[schema.ParseGroupResource(u.GetName())]) == 0:
		if c.controlDefinition(u.GetName()); c.store.Get(resource.DefinitionsResource.GroupResource(),
			resource.NameOf(u)) == nil {
			return "deleted"
		}
	default:
		return c.collectOwner(at)
	}
	if namespace := c.store.Get(corev1.Resource("namespaces"),
		types.NamespacedName{Name: u.GetNamespace()}); namespace != nil &&
		namespace.GetDeletionTimestamp() != nil {
		return c.collectDelete(at, metav1.DeletePropagationBackground, "deleted with its namespace")
	}
	return c.collectDependent(at)
}

// collectOwner handles the finalizers of an owner that is being deleted.
func (c *Cluster) collectOwner(at placed) string {
	dependents := c.dependents(at.object.GetUID())
	switch {
	case slices.Contains(at.object.GetFinalizers(), metav1.FinalizerOrphanDependents):
		if len(dependents) > 0 {
			return c.collectWrite(
				dependents[0],
				"removed an owner that leaves its dependents from "+resource.NameOf(dependents[0].object).String()+", for",
				func(u *unstructured.Unstructured) {
					dropOwners(u, at.object.GetUID())
				},
			)
		}
		return c.collectWrite(at, "removed finalizer orphan from", dropFinalizer(metav1.FinalizerOrphanDependents))
	case slices.Contains(at.object.GetFinalizers(), metav1.FinalizerDeleteDependents):
		for _, dependent := range dependents {
			if slices.ContainsFunc(dependent.object.GetOwnerReferences(), func(o metav1.OwnerReference) bool {
				return o.UID == at.object.GetUID() && o.BlockOwnerDeletion != nil && *o.BlockOwnerDeletion
			}) {
				return ""
			}
		}
		return c.collectWrite(at, "removed finalizer foregroundDeletion from",
			dropFinalizer(metav1.FinalizerDeleteDependents))
	}
	return ""
}

// collectDependent deletes an object without a living owner, or removes the references to owners that are gone.
func (c *Cluster) collectDependent(at placed) string {
	var solid, dangling, waiting []types.UID
	for _, reference := range at.object.GetOwnerReferences() {
		owner, resolvable := c.owner(at, reference)
		switch {
		case !resolvable:
			solid = append(solid, reference.UID)
		case owner == nil:
			dangling = append(dangling, reference.UID)
		case owner.GetDeletionTimestamp() != nil && slices.Contains(owner.GetFinalizers(), metav1.FinalizerDeleteDependents):
			waiting = append(waiting, reference.UID)
		default:
			solid = append(solid, reference.UID)
		}
	}
	policy := metav1.DeletePropagationBackground
	switch {
	case len(dangling)+len(waiting) == 0:
		return ""
	case len(solid) > 0:
		return c.collectWrite(at, "removed owners that are gone from", func(u *unstructured.Unstructured) {
			dropOwners(u, append(dangling, waiting...)...)
		})
	case len(waiting) > 0 && len(c.dependents(at.object.GetUID())) > 0:
		policy = metav1.DeletePropagationForeground
	case slices.Contains(at.object.GetFinalizers(), metav1.FinalizerOrphanDependents):
		policy = metav1.DeletePropagationOrphan
	case slices.Contains(at.object.GetFinalizers(), metav1.FinalizerDeleteDependents):
		policy = metav1.DeletePropagationForeground
	}
	return c.collectDelete(at, policy, "deleted")
}

// owner returns the object of a reference, nil if it is gone. resolvable is false if that is unknown: its kind is not
// served, or it is namespaced and the dependent is not.
func (c *Cluster) owner(
	at placed, reference metav1.OwnerReference,
) (owner *unstructured.Unstructured, resolvable bool) {
	r := c.catalog.ResourceOf(schema.FromAPIVersionAndKind(reference.APIVersion, reference.Kind))
	if r == nil || r.Namespaced && !at.resource.Namespaced {
		return nil, false
	}
	name := types.NamespacedName{Name: reference.Name}
	if r.Namespaced {
		name.Namespace = at.object.GetNamespace()
	}
	owner = c.store.Get(r.Stored(), name)
	if owner != nil && owner.GetUID() != reference.UID {
		owner = nil
	}
	return owner, true
}

func (c *Cluster) dependents(uid types.UID) []placed {
	return slices.DeleteFunc(c.all(), func(at placed) bool {
		return !slices.ContainsFunc(at.object.GetOwnerReferences(), func(o metav1.OwnerReference) bool {
			return o.UID == uid
		})
	})
}

// collectNamespace removes a terminating namespace once it is empty.
func (c *Cluster) collectNamespace(at placed) string {
	if len(at.object.GetFinalizers()) > 0 ||
		slices.ContainsFunc(c.all(), func(other placed) bool { return other.object.GetNamespace() == at.object.GetName() }) {
		return ""
	}
	c.store.Remove(at.resource, at.object)
	return "deleted"
}

func (c *Cluster) collectDelete(at placed, policy metav1.DeletionPropagation, did string) string {
	u := at.object.DeepCopy()
	u.SetFinalizers(at.resource.DeletionFinalizers(u.GetFinalizers(), &metav1.DeleteOptions{PropagationPolicy: &policy}))
	if len(u.GetFinalizers()) == 0 && !at.resource.IsNamespace() {
		c.store.Remove(at.resource, at.object)
		return did
	}
	c.markDeleted(at.resource, u)
	c.store.CommitChange(at.resource, at.object, u)
	return did + " (finalizers hold it)"
}

// collectWrite changes an object as a patch of the collector does.
func (c *Cluster) collectWrite(at placed, did string, mutate func(*unstructured.Unstructured)) string {
	u := at.object.DeepCopy()
	mutate(u)
	if fields, err := at.resource.FieldManager(""); err == nil { // a kind whose schema cannot be read has no managedFields
		u = fields.UpdateNoErrors(at.object, u, collector).(*unstructured.Unstructured)
	}
	c.store.Finish(at.resource, at.object, u)
	return did
}

func dropFinalizer(name string) func(*unstructured.Unstructured) {
	return func(u *unstructured.Unstructured) {
		u.SetFinalizers(resource.OrNil(slices.DeleteFunc(u.GetFinalizers(), func(have string) bool { return have == name })))
	}
}

func dropOwners(u *unstructured.Unstructured, uids ...types.UID) {
	u.SetOwnerReferences(
		resource.OrNil(slices.DeleteFunc(u.GetOwnerReferences(), func(o metav1.OwnerReference) bool {
			return slices.Contains(uids, o.UID)
		})),
	)
}
