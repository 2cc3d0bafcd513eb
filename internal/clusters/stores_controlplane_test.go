//go:build controlplane

package clusters

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/corollary-dev/corollary/pkg/activation/locks"
	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/leadership"
)

// openAs returns a lock as a config of its own has it.
func openAs(t *testing.T, identity, lock string) leadership.Store {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, "activation.yaml", activationFile(identity, lock))
	files, errs := load.Activations(load.Options{Files: []string{dir}}, nil)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	store, err := locks.Open(files[0])
	must(t, err)
	return store
}

func activationFile(identity, lock string) string {
	return "apiVersion: corollary.dev/v1alpha1\nkind: Activation\nmetadata: {name: global}\nidentity: " + identity + "\n" + lock
}

func heldBy(holder string, token int) *leadership.Record {
	now := metav1.NewTime(time.Now().Truncate(time.Microsecond))
	return &leadership.Record{HolderIdentity: holder, LeaseDurationSeconds: 15, AcquireTime: now, RenewTime: now, LeaderTransitions: token}
}

// contract checks what each lock must do, on its real service: two clients compare and swap one record, and tokens grow
// even if the record is deleted.
func contract(t *testing.T, s service, remove func(name string)) {
	t.Helper()
	const name = "contract"
	a, b := openAs(t, "eu", s.Config(t, s.Addr(), name)), openAs(t, "eu", s.Config(t, s.Addr(), name))
	get := func(store leadership.Store) *leadership.Record {
		t.Helper()
		r, err := store.Get(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	lost := func(what string, err error) {
		t.Helper()
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for _, store := range []leadership.Store{a, b} {
		if r, err := store.Get(t.Context()); !apierrors.IsNotFound(err) {
			t.Fatalf("before the first one there is %+v, %v", r, err)
		}
	}
	least := a.LeastToken()
	must(t, a.Create(t.Context(), heldBy("eu_1", int(least))))
	lost("a second one is created", b.Create(t.Context(), heldBy("us_1", 1)))
	if r := get(b); r.HolderIdentity != "eu_1" || r.LeaderTransitions != int(least) {
		t.Errorf("it is read as %+v", r)
	}
	renewed := heldBy("eu_1", int(least))
	must(t, a.Update(t.Context(), renewed))
	must(t, a.Update(t.Context(), renewed)) // twice the same is a write, too
	lost("an update of what was read before", b.Update(t.Context(), heldBy("us_1", 1)))
	if r := get(b); !r.RenewTime.Equal(&renewed.RenewTime) {
		t.Errorf("it was renewed at %s, not %s", r.RenewTime, renewed.RenewTime)
	}
	must(t, b.Update(t.Context(), heldBy("us_1", int(max(least+1, b.LeastToken())))))
	lost("an update of what somebody else has taken", a.Update(t.Context(), renewed))
	greatest := get(a).LeaderTransitions
	remove(name)
	if r, err := a.Get(t.Context()); !apierrors.IsNotFound(err) {
		t.Errorf("after it was deleted there is %+v, %v", r, err)
	}
	lost("an update of what was deleted", b.Update(t.Context(), heldBy("us_1", 1)))
	_, counted := s.(interface{ countsInRecord() })
	if least := a.LeastToken(); !counted && int(least) <= greatest {
		t.Errorf("after it was deleted a token is %d, not greater than %d", least, greatest)
	}
	must(t, a.Create(t.Context(), heldBy("eu_1", greatest+1)))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// refusesGarbage checks that what is not the record of a lock is neither taken nor written over.
func refusesGarbage(t *testing.T, s service, put func(name, text string)) {
	t.Helper()
	for name, text := range map[string]string{"empty": "", "text": "somebody else's", "other": `{"leader":"x"}`,
		"long": strings.Repeat("x", 5000)} {
		put(name, text)
		store := openAs(t, "eu", s.Config(t, s.Addr(), name))
		if r, err := store.Get(t.Context()); err == nil ||
			!strings.Contains(err.Error(), "not the record of a lock: use another place, or remove it") {
			t.Errorf("%s: it is read as %+v, %v", name, r, err)
		}
		if err := store.Update(t.Context(), heldBy("eu_1", 1)); err == nil {
			t.Errorf("%s: an update writes over it", name)
		}
		if err := store.Create(t.Context(), heldBy("eu_1", 1)); err == nil {
			t.Errorf("%s: it is written over", name)
		}
	}
}

func (s *leaseService) countsInRecord() {}

// TestContract: the locks whose services are Go keep the contract. An etcd with TLS is one of its own.
func TestContract(t *testing.T) {
	t.Parallel()
	t.Run("Lease", leaseContract)
	t.Run("etcd", etcdContract)
	t.Run("etcd with TLS", etcdTLS)
}

func leaseContract(t *testing.T) {
	t.Parallel()
	client, err := dynamic.NewForConfig(planes["eu"].Config())
	must(t, err)
	leases := client.Resource(schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"})
	contract(t, &leaseService{cfg: planes["eu"].Config()}, func(name string) {
		must(t, leases.Namespace("default").Delete(t.Context(), name, metav1.DeleteOptions{}))
	})
}

// etcdContract: besides, when the disk is full a renewal fails and says why, and what is there can be read.
func etcdContract(t *testing.T) {
	t.Parallel()
	s := startEtcdWith(t, "http", "--quota-backend-bytes", "2000000")
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"http://" + s.addr}, Logger: zap.NewNop(), DialTimeout: time.Minute})
	must(t, err)
	defer func() { _ = client.Close() }()
	contract(t, s, func(name string) {
		_, err := client.Delete(t.Context(), "/corollary/"+name)
		must(t, err)
	})
	refusesGarbage(t, s, func(name, text string) {
		_, err := client.Put(t.Context(), "/corollary/"+name, text)
		must(t, err)
	})
	store := openAs(t, "eu", s.Config(t, s.Addr(), "full"))
	_, _ = store.Get(t.Context())
	must(t, store.Create(t.Context(), heldBy("eu_1", 1)))
	for range 100 {
		if _, err = client.Put(t.Context(), "/filling", strings.Repeat("x", 500_000)); err != nil {
			break
		}
	}
	if err := store.Update(t.Context(), heldBy("eu_1", 1)); err == nil || apierrors.IsConflict(err) ||
		!strings.Contains(err.Error(), "database space exceeded") {
		t.Errorf("on a full disk a renewal returns %v", err)
	}
	if r, err := store.Get(t.Context()); err != nil || r.HolderIdentity != "eu_1" {
		t.Errorf("on a full disk it is read as %+v, %v", r, err)
	}
}

// etcdTLS: etcd lets in who has a certificate, and a client talks only to an etcd with one that it trusts.
func etcdTLS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ca := newAuthority(t, dir, "ca")
	newAuthority(t, dir, "other")
	ca.issue(t, "server")
	ca.issue(t, "client")
	file := func(name string) string { return filepath.Join(dir, name) }
	s := startEtcdWith(t, "https", "--cert-file", file("server.crt"), "--key-file", file("server.key"), "--client-cert-auth",
		"--trusted-ca-file", file("ca.crt"))
	client := ", cert: " + file("client.crt") + ", key: " + file("client.key")
	for _, test := range []struct {
		tls, reason string
		fails       bool
	}{
		{"{ca: " + file("ca.crt") + client + ", serverName: server}", "both know each other", false},
		{"{ca: " + file("ca.crt") + ", serverName: server}", "the client has no certificate", true},
		{"{ca: " + file("other.crt") + client + ", serverName: server}", "another authority", true},
		{"{ca: " + file("ca.crt") + client + ", serverName: elsewhere}", "another name", true},
	} {
		store := openAs(t, "eu", "etcd: {endpoints: [\"https://"+s.addr+"\"], key: /lock, tls: "+test.tls+"}\n")
		timeout := patience
		if test.fails {
			timeout = 2 * time.Second
		}
		ctx, cancel := context.WithTimeout(t.Context(), timeout)
		_, err := store.Get(ctx)
		cancel()
		if apierrors.IsNotFound(err) == test.fails || errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", test.reason, err)
		}
	}
}

// authority issues certificates into files.
type authority struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T, dir, name string) *authority {
	t.Helper()
	a := &authority{dir: dir}
	template := &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	a.cert, a.key = a.write(t, name, template)
	return a
}

func (a *authority) issue(t *testing.T, name string) {
	t.Helper()
	a.write(t, name, &x509.Certificate{DNSNames: []string{name}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}})
}

// write signs a certificate, by itself if there is no authority yet.
func (a *authority) write(t *testing.T, name string, template *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template.SerialNumber, template.Subject = big.NewInt(time.Now().UnixNano()), pkix.Name{CommonName: name}
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = template, key
	}
	data, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	must(t, err)
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	must(t, err)
	for file, block := range map[string]*pem.Block{".crt": {Type: "CERTIFICATE", Bytes: data}, ".key": {Type: "PRIVATE KEY",
		Bytes: encoded}} {
		write(t, a.dir, name+file, string(pem.EncodeToMemory(block)))
	}
	cert, err := x509.ParseCertificate(data)
	must(t, err)
	return cert, key
}
