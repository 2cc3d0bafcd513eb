package validate

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/corollary-dev/corollary/pkg/config/document"
	"github.com/corollary-dev/corollary/pkg/config/forms"
	"github.com/corollary-dev/corollary/pkg/config/lock"
)

// checkActivationLock checks where the lock is.
func checkActivationLock(v *validator, a *lock.Activation) {
	given := slices.DeleteFunc(slices.Clone(lock.ActivationLocks), func(key string) bool { return !v.Given(key) })
	switch {
	case len(given) == 0:
		v.Add("", "set one of "+strings.Join(lock.ActivationLocks, ", "), "required value is missing: where the lock is")
	case len(given) > 1:
		v.Add(given[1], "remove one of them", "the lock is %s too", given[0])
	}
	if a.Lease != nil {
		checkActivationLease(v, a.Lease)
	}
	if a.Etcd != nil {
		checkActivationEtcd(v, a.Etcd)
	}
	if a.ZooKeeper != nil {
		checkActivationZooKeeper(v, a.ZooKeeper)
	}
	if a.DynamoDB != nil {
		checkActivationDynamoDB(v, a.DynamoDB)
	}
	if a.DNS != nil {
		checkActivationDNS(v, a.DNS)
	}
}

func checkActivationLease(v *validator, l *lock.ActivationLease) {
	if v.required("lease.namespace", l.Namespace, "name the namespace of the Lease") {
		v.form(forms.NamespaceName, "lease.namespace", l.Namespace, l.Namespace)
	}
	if v.required("lease.name", l.Name, "name the Lease") {
		v.form(forms.LeaseName, "lease.name", l.Name, l.Name)
	}
	v.required("lease.kubeconfig", l.Kubeconfig,
		"name a kubeconfig file: the Lease must be in a cluster that all others reach")
}

func checkActivationEtcd(v *validator, e *lock.ActivationEtcd) {
	if len(e.Endpoints) == 0 {
		v.Add("etcd.endpoints", "list the members, such as https://etcd-1:2379", "required value is missing")
	}
	v.required("etcd.key", e.Key, "name the key, such as /corollary/appoperator")
	checkActivationTLS(v, "etcd.tls", e.TLS)
	if secure := checkEtcdEndpoints(v, e.Endpoints); e.TLS != nil && len(e.Endpoints) > 0 && !secure {
		v.Add("etcd.tls", "begin the endpoints with https://, or remove it", "no endpoint uses TLS")
	}
	switch {
	case e.Username == "" && e.PasswordFrom != nil:
		v.Add("etcd.username", "name the user", "required value is missing: there is a password")
	case e.Username != "" && e.PasswordFrom == nil:
		v.Add("etcd.passwordFrom", "set env or file", "required value is missing: there is a user")
	}
	checkActivationSecret(v, "etcd.passwordFrom", e.PasswordFrom)
}

// checkEtcdEndpoints checks the URLs of members, and reports whether any of them uses TLS.
func checkEtcdEndpoints(v *validator, endpoints []string) (secure bool) {
	for i, endpoint := range endpoints {
		u, err := url.Parse(endpoint)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Port() == "" || u.Path != "" {
			v.Add(fmt.Sprintf("etcd.endpoints[%d]", i), "write one such as https://etcd-1:2379",
				"%q is not the URL of a member", document.Clip(endpoint))
		}
		secure = secure || err == nil && u.Scheme == "https"
	}
	return secure
}

func checkActivationZooKeeper(v *validator, z *lock.ActivationZooKeeper) {
	if len(z.Servers) == 0 {
		v.Add("zookeeper.servers", "list them, such as zookeeper-1:2181", "required value is missing")
	}
	for i, server := range z.Servers {
		checkServer(v, fmt.Sprintf("zookeeper.servers[%d]", i), server, "zookeeper-1:2181")
	}
	if v.required("zookeeper.path", z.Path, "name the node, such as /corollary/appoperator") &&
		(z.Path == "/" || path.Clean(z.Path) != z.Path || !path.IsAbs(z.Path)) {
		v.Add("zookeeper.path", "write one such as /corollary/appoperator",
			"%q is not the path of a node", document.Clip(z.Path))
	}
	checkActivationTLS(v, "zookeeper.tls", z.TLS)
	checkActivationSecret(v, "zookeeper.authFrom", z.AuthFrom)
}

// checkServer checks HOST:PORT.
func checkServer(v *validator, at, server, such string) {
	if host, port, err := net.SplitHostPort(server); err != nil || host == "" || port == "" {
		v.Add(at, "write HOST:PORT, such as "+such, "%q is not a server", document.Clip(server))
	}
}

func checkActivationDynamoDB(v *validator, d *lock.ActivationDynamoDB) {
	v.required("dynamodb.table", d.Table, "name the table")
	v.required("dynamodb.key", d.Key, "name the item, such as appoperator")
	if u, err := url.Parse(d.Endpoint); d.Endpoint != "" &&
		(err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "") {
		v.Add("dynamodb.endpoint", "write one such as https://dynamodb.example.com",
			"%q is not a URL", document.Clip(d.Endpoint))
	}
}

func checkActivationDNS(v *validator, d *lock.ActivationDNS) {
	switch {
	case d.Host == "" && d.TXT == "":
		v.Add("dns", "set host, or txt", "required value is missing: the name that says which cluster is active")
	case d.Host != "" && d.TXT != "":
		v.Add("dns.txt", "remove one of them", "the name is that of host too")
	case d.Host != "":
		v.form(forms.HostName, "dns.host", d.Host, d.Host)
		checkActivationAddresses(v, d)
		checkUnwanted(v, "dns.value", "txt")
	default:
		v.form(forms.HostName, "dns.txt", d.TXT, d.TXT)
		checkUnwanted(v, "dns.addresses", "host")
		checkUnwanted(v, "dns.interface", "host")
	}
	if d.Resolver != "" {
		checkServer(v, "dns.resolver", d.Resolver, "10.0.0.53:53")
	}
}

func checkActivationAddresses(v *validator, d *lock.ActivationDNS) {
	switch {
	case len(d.Addresses) == 0 && d.Interface == "":
		v.Add("dns.addresses", "list them, or set interface", "required value is missing: the addresses of this cluster")
	case len(d.Addresses) > 0 && d.Interface != "":
		v.Add("dns.interface", "remove one of them", "the addresses of this cluster are listed too")
	}
	for i, a := range d.Addresses {
		if _, err := netip.ParseAddr(a); err != nil {
			v.Add(fmt.Sprintf("dns.addresses[%d]", i), "write one such as 192.0.2.7", "%q is not an address", document.Clip(a))
		}
	}
}

// checkUnwanted reports a key that means nothing without another one.
func checkUnwanted(v *validator, at, without string) {
	if v.Given(strings.Split(at, ".")...) {
		v.Add(at, "remove it", "it has no effect without %s", without)
	}
}

// checkActivationTLS checks what names files only: whether they can be read is found when the lock is opened.
func checkActivationTLS(v *validator, at string, t *lock.ActivationTLS) {
	if t != nil && (t.Cert == "") != (t.Key == "") {
		v.Add(at, "set both cert and key, or none", "a certificate and its key belong together")
	}
}

func checkActivationSecret(v *validator, at string, s *lock.ActivationSecret) {
	if s != nil && (s.Env == "") == (s.File == "") {
		v.Add(at, "set one of env and file", "found %d places of one secret", len(strings.Fields(s.Env+" "+s.File)))
	}
}
