package config

const (
	// ActivationKind is the kind of a file that says which one of several clusters writes.
	ActivationKind = "Activation"
	// EveryCluster is the activation of an operator that writes in every cluster.
	EveryCluster = "None"
)

// Activation is a file of kind Activation: a lock outside of the clusters, whose holder is the active cluster. The operators of
// all others only watch. Exactly one of the locks is set.
type Activation struct {
	// APIVersion is corollary.dev/v1alpha1.
	APIVersion string `json:"apiVersion"`
	// Kind is Activation.
	Kind string `json:"kind"`
	// Metadata names the activation: operators name it in their key activation.
	Metadata Metadata `json:"metadata"`
	// Lease makes the lock a Lease in a cluster that all others reach.
	Lease *ActivationLease `json:"lease,omitempty"`
	// Etcd makes the lock a key in etcd.
	Etcd *ActivationEtcd `json:"etcd,omitempty"`
	// ZooKeeper makes the lock a node in ZooKeeper.
	ZooKeeper *ActivationZooKeeper `json:"zookeeper,omitempty"`
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

// ActivationEtcd is a key in etcd.
type ActivationEtcd struct {
	// Endpoints are the URLs of the members: https://HOST:PORT.
	Endpoints []string `json:"endpoints" min:"1" unique:"true"`
	// Key of the lock, such as /corollary/appoperator.
	Key string `json:"key"`
	// TLS is how https endpoints are checked, and how this cluster identifies itself to them.
	TLS *ActivationTLS `json:"tls,omitempty"`
	// Username of this cluster, if etcd asks for one.
	Username string `json:"username,omitempty"`
	// PasswordFrom is where the password of the user is.
	PasswordFrom *ActivationSecret `json:"passwordFrom,omitempty"`
}

// ActivationZooKeeper is a node in ZooKeeper.
type ActivationZooKeeper struct {
	// Servers of the ensemble: HOST:PORT.
	Servers []string `json:"servers" min:"1" unique:"true"`
	// Path of the node, such as /corollary/appoperator. It is created if it is missing, and so are the nodes above it.
	Path string `json:"path"`
	// TLS is how servers are checked, and how this cluster identifies itself to them. Default: no TLS.
	TLS *ActivationTLS `json:"tls,omitempty"`
	// AuthFrom is where USER:PASSWORD of ZooKeeper's scheme digest is: nodes are created for that user alone. Default: for anybody.
	AuthFrom *ActivationSecret `json:"authFrom,omitempty"`
}

// ActivationTLS names files, relative to this one. They are read again when they change.
type ActivationTLS struct {
	// CA is a file with the certificates that servers are checked against. Default: those of the system.
	CA string `json:"ca,omitempty"`
	// Cert is a file with the certificate of this cluster.
	Cert string `json:"cert,omitempty"`
	// Key is a file with the key of the certificate.
	Key string `json:"key,omitempty"`
	// ServerName is the name in the certificates of servers. Default: the host of the endpoint.
	ServerName string `json:"serverName,omitempty"`
}

// ActivationSecret is where a secret value is: exactly one of env and file.
type ActivationSecret struct {
	// Env is the name of an environment variable.
	Env string `json:"env,omitempty"`
	// File is the path of a file, relative to this one. A line break at its end does not count.
	File string `json:"file,omitempty"`
}

// ActivationToken names the annotation on downstreams that holds the fencing token.
type ActivationToken struct {
	// Annotation is the key of the annotation. It is not part of the hash, and is written only along with other changes.
	Annotation string `json:"annotation" form:"key"`
}
