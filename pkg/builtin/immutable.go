package builtin

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// immutable are the fields of built-in kinds that the API server does not let anybody change, each with everything
// below it but for what follows with a minus.
var immutable = map[schema.GroupKind]string{
	{Group: "apps", Kind: "StatefulSet"}: "spec.volumeClaimTemplates spec.selector spec.serviceName " +
		"spec.podManagementPolicy",
	{Group: "apps", Kind: "Deployment"}: "spec.selector",
	{Group: "apps", Kind: "DaemonSet"}:  "spec.selector",
	{Group: "apps", Kind: "ReplicaSet"}: "spec.selector",
	{Group: "batch", Kind: "Job"}: "spec.selector spec.template spec.completionMode " +
		"spec.podFailurePolicy spec.successPolicy spec.managedBy",
	{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"}:        "roleRef",
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"}: "roleRef",
	{Group: "storage.k8s.io",
		Kind: "StorageClass"}: "provisioner parameters reclaimPolicy volumeBindingMode",
	{Group: "scheduling.k8s.io", Kind: "PriorityClass"}:               "value preemptionPolicy",
	{Group: "node.k8s.io", Kind: "RuntimeClass"}:                      "handler",
	{Group: "networking.k8s.io", Kind: "IngressClass"}:                "spec.controller",
	{Group: "certificates.k8s.io", Kind: "CertificateSigningRequest"}: "spec",
	{Kind: "Service"}:               "spec.clusterIP spec.clusterIPs spec.loadBalancerClass",
	{Kind: "PersistentVolumeClaim"}: "spec -spec.resources -spec.volumeAttributesClassName",
	{Kind: "Secret"}:                "type",
	{Kind: "Pod"}: "spec -spec.activeDeadlineSeconds -spec.tolerations -spec.terminationGracePeriodSeconds " +
		"-spec.containers.image -spec.initContainers.image -spec.schedulingGates",
}

// Immutable returns the immutable field of a built-in kind that a field is, or is in; empty if it can be changed. Lists
// take no step.
func Immutable(kind schema.GroupKind, field []string) string {
	found := ""
	for entry := range strings.FieldsSeq(immutable[kind]) {
		except := strings.HasPrefix(entry, "-")
		path := strings.Split(strings.TrimPrefix(entry, "-"), ".")
		switch {
		case len(path) > len(field) || !slices.Equal(path, field[:len(path)]):
		case except:
			return ""
		default:
			found = entry
		}
	}
	return found
}
