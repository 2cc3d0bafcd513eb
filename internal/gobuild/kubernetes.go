package gobuild

import "strings"

// Kubernetes is the module whose version the programs of Kubernetes carry.
const Kubernetes = "k8s.io/kubernetes"

// KubernetesStamps are the stamps that Kubernetes' own build sets and clients
// parse: without them, a server calls itself v0.0.0.
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
