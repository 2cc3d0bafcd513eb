package drift

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// SumOf gives tests and benchmarks P alone.
func (v *View) SumOf(u *unstructured.Unstructured) Sum {
	owned, _ := ours(u, v.Manager)
	return v.sum(u.Object, owned)
}

// AbsentOf gives tests what the manager owns that u has not.
func (v *View) AbsentOf(u *unstructured.Unstructured) map[string]any {
	owned, _ := ours(u, v.Manager)
	return v.absent(u.Object, owned)
}
