package kept

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/drift"
)

// identity is what a cache needs of the metadata of an object; a metav1.ObjectMeta takes four times the memory.
type identity struct {
	drift.NoMetadata
	Name, Namespace string
	UID             types.UID
	ResourceVersion string
}

func identityOf(u *unstructured.Unstructured) identity {
	return identity{Name: u.GetName(), Namespace: u.GetNamespace(), UID: u.GetUID(),
		ResourceVersion: u.GetResourceVersion()}
}

// GetNamespace implements metav1.Object.
func (i *identity) GetNamespace() string { return i.Namespace }

// SetNamespace implements metav1.Object.
func (i *identity) SetNamespace(namespace string) { i.Namespace = namespace }

// GetName implements metav1.Object.
func (i *identity) GetName() string { return i.Name }

// SetName implements metav1.Object.
func (i *identity) SetName(name string) { i.Name = name }

// GetUID implements metav1.Object.
func (i *identity) GetUID() types.UID { return i.UID }

// SetUID implements metav1.Object.
func (i *identity) SetUID(uid types.UID) { i.UID = uid }

// GetResourceVersion implements metav1.Object.
func (i *identity) GetResourceVersion() string { return i.ResourceVersion }

// SetResourceVersion implements metav1.Object.
func (i *identity) SetResourceVersion(version string) { i.ResourceVersion = version }
