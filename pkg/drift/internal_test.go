package drift

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/canonical"
	"github.com/corollary-dev/corollary/pkg/drift/managed"
)

// SumOf exports P for tests and benchmarks.
func (v *View) SumOf(u *unstructured.Unstructured) canonical.Sum {
	owned, _ := managed.Owned(u, v.Manager)
	return v.sum(u.Object, owned)
}

// AbsentOf exports absent for tests: what the manager owns and u does not have.
func (v *View) AbsentOf(u *unstructured.Unstructured) map[string]any {
	owned, _ := managed.Owned(u, v.Manager)
	return owned.Missing(u.Object, v.leftOut())
}
