package drift

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// SumOf gives tests and benchmarks P alone.
func (v *View) SumOf(u *unstructured.Unstructured) Sum {
	owned, _ := ours(u, v.Manager)
	return v.sum(u.Object, owned)
}
