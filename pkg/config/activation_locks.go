package config

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path"
	"slices"
	"strings"
)

// activationLocks are the keys of an Activation that say where its lock is.
var activationLocks = []string{"lease", "etcd", "zookeeper", "dynamodb", "dns"}

// activationLock checks where the lock is.
func (v *validator) activationLock(a *Activation) {
	given := slices.DeleteFunc(slices.Clone(activationLocks), func(key string) bool { return !v.given(key) })
	switch {
	case len(given) == 0:
		v.add("", "set one of "+strings.Join(activationLocks, ", "), "required value is missing: where the lock is")
	case len(given) > 1:
		v.add(given[1], "remove one of them", "the lock is %s too", given[0])
	}
	if a.Lease != nil {
		v.activationLease(a.Lease)
	}
	if a.Etcd != nil {
		v.activationEtcd(a.Etcd)
	}
	if a.ZooKeeper != nil {
		v.activationZooKeeper(a.ZooKeeper)
	}
	if a.DynamoDB != nil {
		v.activationDynamoDB(a.DynamoDB)
	}
	if a.DNS != nil {
		v.activationDNS(a.DNS)
	}
}

func (v *validator) activationLease(l *ActivationLease) {
	if v.required("lease.namespace", l.Namespace, "name the namespace of the Lease") {
		v.form(namespaceName, "lease.namespace", l.Namespace, l.Namespace)
	}
	if v.required("lease.name", l.Name, "name the Lease") {
		v.form(leaseName, "lease.name", l.Name, l.Name)
	}
	v.required("lease.kubeconfig", l.Kubeconfig, "name a kubeconfig file: the Lease must be in a cluster that all others reach")
}

func (v *validator) activationEtcd(e *ActivationEtcd) {
	if len(e.Endpoints) == 0 {
		v.add("etcd.endpoints", "list the members, such as https://etcd-1:2379", "required value is missing")
	}
	v.required("etcd.key", e.Key, "name the key, such as /corollary/appoperator")
	v.activationTLS("etcd.tls", e.TLS)
	if secure := v.etcdEndpoints(e.Endpoints); e.TLS != nil && len(e.Endpoints) > 0 && !secure {
		v.add("etcd.tls", "begin the endpoints with https://, or remove it", "no endpoint uses TLS")
	}
	switch {
	case e.Username == "" && e.PasswordFrom != nil:
		v.add("etcd.username", "name the user", "required value is missing: there is a password")
	case e.Username != "" && e.PasswordFrom == nil:
		v.add("etcd.passwordFrom", "set env or file", "required value is missing: there is a user")
	}
	v.activationSecret("etcd.passwordFrom", e.PasswordFrom)
}

// etcdEndpoints checks the URLs of members, and reports whether any of them uses TLS.
func (v *validator) etcdEndpoints(endpoints []string) (secure bool) {
	for i, endpoint := range endpoints {
		u, err := url.Parse(endpoint)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Port() == "" || u.Path != "" {
			v.add(fmt.Sprintf("etcd.endpoints[%d]", i), "write one such as https://etcd-1:2379", "%q is not the URL of a member", clip(endpoint))
		}
		secure = secure || err == nil && u.Scheme == "https"
	}
	return secure
}

func (v *validator) activationZooKeeper(z *ActivationZooKeeper) {
	if len(z.Servers) == 0 {
		v.add("zookeeper.servers", "list them, such as zookeeper-1:2181", "required value is missing")
	}
	for i, server := range z.Servers {
		v.server(fmt.Sprintf("zookeeper.servers[%d]", i), server, "zookeeper-1:2181")
	}
	if v.required("zookeeper.path", z.Path, "name the node, such as /corollary/appoperator") &&
		(z.Path == "/" || path.Clean(z.Path) != z.Path || !path.IsAbs(z.Path)) {
		v.add("zookeeper.path", "write one such as /corollary/appoperator", "%q is not the path of a node", clip(z.Path))
	}
	v.activationTLS("zookeeper.tls", z.TLS)
	v.activationSecret("zookeeper.authFrom", z.AuthFrom)
}

// server checks HOST:PORT.
func (v *validator) server(at, server, such string) {
	if host, port, err := net.SplitHostPort(server); err != nil || host == "" || port == "" {
		v.add(at, "write HOST:PORT, such as "+such, "%q is not a server", clip(server))
	}
}

func (v *validator) activationDynamoDB(d *ActivationDynamoDB) {
	v.required("dynamodb.table", d.Table, "name the table")
	v.required("dynamodb.key", d.Key, "name the item, such as appoperator")
	if u, err := url.Parse(d.Endpoint); d.Endpoint != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "") {
		v.add("dynamodb.endpoint", "write one such as https://dynamodb.example.com", "%q is not a URL", clip(d.Endpoint))
	}
}

func (v *validator) activationDNS(d *ActivationDNS) {
	switch {
	case d.Host == "" && d.TXT == "":
		v.add("dns", "set host, or txt", "required value is missing: the name that says which cluster is active")
	case d.Host != "" && d.TXT != "":
		v.add("dns.txt", "remove one of them", "the name is that of host too")
	case d.Host != "":
		v.form(hostName, "dns.host", d.Host, d.Host)
		v.activationAddresses(d)
		v.unwanted("dns.value", "txt")
	default:
		v.form(hostName, "dns.txt", d.TXT, d.TXT)
		v.unwanted("dns.addresses", "host")
		v.unwanted("dns.interface", "host")
	}
	if d.Resolver != "" {
		v.server("dns.resolver", d.Resolver, "10.0.0.53:53")
	}
}

func (v *validator) activationAddresses(d *ActivationDNS) {
	switch {
	case len(d.Addresses) == 0 && d.Interface == "":
		v.add("dns.addresses", "list them, or set interface", "required value is missing: the addresses of this cluster")
	case len(d.Addresses) > 0 && d.Interface != "":
		v.add("dns.interface", "remove one of them", "the addresses of this cluster are listed too")
	}
	for i, a := range d.Addresses {
		if _, err := netip.ParseAddr(a); err != nil {
			v.add(fmt.Sprintf("dns.addresses[%d]", i), "write one such as 192.0.2.7", "%q is not an address", clip(a))
		}
	}
}

// unwanted reports a key that means nothing without another one.
func (v *validator) unwanted(at, without string) {
	if v.given(strings.Split(at, ".")...) {
		v.add(at, "remove it", "it has no effect without %s", without)
	}
}

// activationTLS checks what names files only: whether they can be read is found when the lock is opened.
func (v *validator) activationTLS(at string, t *ActivationTLS) {
	if t != nil && (t.Cert == "") != (t.Key == "") {
		v.add(at, "set both cert and key, or none", "a certificate and its key belong together")
	}
}

func (v *validator) activationSecret(at string, s *ActivationSecret) {
	if s != nil && (s.Env == "") == (s.File == "") {
		v.add(at, "set one of env and file", "found %d places of one secret", len(strings.Fields(s.Env+" "+s.File)))
	}
}

// Read returns the value of a secret; "" for none.
func (a *ActivationFile) Read(at string, s *ActivationSecret) (string, error) {
	switch {
	case s == nil:
		return "", nil
	case s.Env != "":
		value, ok := os.LookupEnv(s.Env)
		if !ok {
			return "", a.Errorf(at+".env", "set it", "environment variable %s is not set", s.Env)
		}
		return value, nil
	}
	data, err := readFile(a.Place(s.File))
	if err != nil {
		return "", a.Errorf(at+".file", "check the name and the permissions", "%s cannot be read: %s", a.Place(s.File), reason(err))
	}
	return strings.TrimSuffix(strings.TrimSuffix(string(data), "\n"), "\r"), nil
}
