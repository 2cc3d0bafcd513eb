package gobuild

import "strings"

// Kubernetes is the module with the version of Kubernetes' programs.
const Kubernetes = "k8s.io/kubernetes"

// KubernetesStamps returns the stamps of Kubernetes' own build: clients parse them, and without them a server reports
// v0.0.0.
func KubernetesStamps(version string) []string {
	major, rest, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	minor, _, _ := strings.Cut(rest, ".")
	var stamps []string
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		for _, stamp := range []string{
			"gitVersion=" + version, "gitMajor=" + major, "gitMinor=" + minor,
			"gitCommit=unknown", "gitTreeState=clean",
		} {
			stamps = append(stamps, pkg+"."+stamp)
		}
	}
	return stamps
}
