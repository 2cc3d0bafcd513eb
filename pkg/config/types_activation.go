package config

const (
	// ActivationKind is the kind of a file that says which one of several clusters writes.
	ActivationKind = "Activation"
	// EveryCluster is the activation of an operator that writes in every cluster.
	EveryCluster = "None"
)

// Activation is a file of kind Activation: a lock outside of the clusters, whose holder is the active cluster. The operators of
// all others only watch.
type Activation struct {
	// APIVersion is corollary.dev/v1alpha1.
	APIVersion string `json:"apiVersion"`
	// Kind is Activation.
	Kind string `json:"kind"`
	// Metadata names the activation: operators name it in their key activation.
	Metadata Metadata `json:"metadata"`
	// Lease makes the lock a Lease in a cluster that all others reach.
	Lease *ActivationLease `json:"lease,omitempty"`
	// Identity of this cluster, different from those of all others. Flag or environment override it: --activation-identity.
	Identity string `json:"identity,omitempty"`
	// LeaseDuration is how long the others wait after the last renewal before they take the lock: whole seconds. Default: 15s.
	LeaseDuration Duration `json:"leaseDuration,omitempty"`
	// RenewDeadline is how long after its last renewal was sent the active cluster still writes. Default: 10s.
	RenewDeadline Duration `json:"renewDeadline,omitempty"`
	// RetryPeriod is how often the lock is renewed. Default: 2s.
	RetryPeriod Duration `json:"retryPeriod,omitempty"`
	// OnLost is Standby (default: watch, and wait for the lock), or Exit: the process ends.
	OnLost OnLost `json:"onLost,omitempty"`
}

// ActivationLease is a Lease in a cluster that all others reach.
type ActivationLease struct {
	// Namespace of the Lease.
	Namespace string `json:"namespace" form:"dnsLabel"`
	// Name of the Lease.
	Name string `json:"name" form:"objectName"`
	// Kubeconfig is the path of a kubeconfig for the cluster with the Lease, relative to this file.
	Kubeconfig string `json:"kubeconfig"`
	// Context in the kubeconfig. Default: its current one.
	Context string `json:"context,omitempty"`
}

// ActivationToken names the annotation on downstreams that holds the fencing token.
type ActivationToken struct {
	// Annotation is the key of the annotation. It is not part of the hash, and is written only along with other changes.
	Annotation string `json:"annotation" form:"key"`
}
