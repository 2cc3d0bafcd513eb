package builtin

import "strings"

// OwnsGroup reports whether a group belongs to Kubernetes: the API server refuses to have new kinds in it.
func OwnsGroup(group string) bool {
	for _, domain := range []string{"k8s.io", "kubernetes.io"} {
		if group == domain || strings.HasSuffix(group, "."+domain) {
			return true
		}
	}
	return false
}
