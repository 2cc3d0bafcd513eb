// Package lock has the types of files of kind Activation: the lock that says which one of several clusters writes.
package lock

import "github.com/corollary-dev/corollary/pkg/config/common"

const (
	// ActivationKind is the kind of a file that says which one of several clusters writes.
	ActivationKind = "Activation"
	// OnLostStandby has a process that lost the lock watch, and wait for it.
	OnLostStandby = "Standby"
)

// Activation is a file of kind Activation: a lock outside of the clusters, whose holder is the active cluster. The
// operators of all others only watch. Exactly one of the locks is set.
type Activation struct {
	// APIVersion is corollary.dev/v1alpha1.
	APIVersion string `json:"apiVersion"`
	// Kind is Activation.
	Kind string `json:"kind"`
	// Metadata names the activation: operators name it in their key activation.
	Metadata common.Metadata `json:"metadata"`
	// Lease makes the lock a Lease in a cluster that all others reach.
	Lease *ActivationLease `json:"lease,omitempty"`
	// Etcd makes the lock a key in etcd.
	Etcd *ActivationEtcd `json:"etcd,omitempty"`
	// ZooKeeper makes the lock a node in ZooKeeper.
	ZooKeeper *ActivationZooKeeper `json:"zookeeper,omitempty"`
	// DynamoDB makes the lock an item in a table of DynamoDB.
	DynamoDB *ActivationDynamoDB `json:"dynamodb,omitempty"`
	// DNS has a name in DNS say which cluster is active. It is not a lock: two clusters may be active at a time.
	DNS *ActivationDNS `json:"dns,omitempty"`
	// Identity of this cluster, different from those of all others. Flag or environment override it:
	// --activation-identity.
	Identity string `json:"identity,omitempty"`
	// LeaseDuration is how long the others wait after the last renewal before they take the lock: whole seconds. Default:
	// 15s.
	LeaseDuration common.Duration `json:"leaseDuration,omitempty"`
	// RenewDeadline is how long after its last renewal was sent the active cluster still writes. Default: 10s.
	RenewDeadline common.Duration `json:"renewDeadline,omitempty"`
	// RetryPeriod is how often the lock is renewed. Default: 2s.
	RetryPeriod common.Duration `json:"retryPeriod,omitempty"`
	// OnLost is Standby (default: watch, and wait for the lock), or Exit: the process ends.
	OnLost string `json:"onLost,omitempty" enum:"Standby,Exit"`
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
	// AuthFrom is where USER:PASSWORD of ZooKeeper's scheme digest is: nodes are created for that user alone. Default: for
	// anybody.
	AuthFrom *ActivationSecret `json:"authFrom,omitempty"`
}

// ActivationDynamoDB is an item in a table of DynamoDB. Credentials are those of the AWS SDK: environment variables, a
// web identity (the pod's ServiceAccount), shared files, or the machine's role.
type ActivationDynamoDB struct {
	// Table with the item. It has a partition key of type String, and no sort key.
	Table string `json:"table"`
	// Key of the item, such as appoperator.
	Key string `json:"key"`
	// PartitionKey is the name of the table's partition key. Default: key.
	PartitionKey string `json:"partitionKey,omitempty"`
	// Region of the table. Default: that of the environment.
	Region string `json:"region,omitempty"`
	// Endpoint is the URL of a service that is not that of the region.
	Endpoint string `json:"endpoint,omitempty"`
}

// ActivationDNS is a name in DNS that says which cluster is active. Exactly one of host and txt is set.
type ActivationDNS struct {
	// Host resolves to addresses of the active cluster, and to no others.
	Host string `json:"host,omitempty" form:"hostName"`
	// Addresses of this cluster, with host.
	Addresses []string `json:"addresses,omitempty" unique:"true"`
	// Interface is a network interface of this machine, or pod, whose addresses are those of this cluster; in the place of
	// addresses.
	Interface string `json:"interface,omitempty"`
	// TXT is a name with a TXT record that says which cluster is active.
	TXT string `json:"txt,omitempty" form:"hostName"`
	// Value that the TXT record has while this cluster is the active one. Default: identity.
	Value string `json:"value,omitempty"`
	// Resolver to ask: HOST:PORT, best a name server of the zone. Default: those of the system, in turn.
	Resolver string `json:"resolver,omitempty"`
	// Interval is how often the name is resolved. Default: retryPeriod.
	Interval common.Duration `json:"interval,omitempty"`
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

// ActivationLocks are the keys of an Activation that say where its lock is.
var ActivationLocks = []string{"lease", "etcd", "zookeeper", "dynamodb", "dns"}
