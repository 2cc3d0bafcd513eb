// Package local makes of the API server in memory one that people use: with namespaces, with the controllers that
// delete, and on a loopback address, for kubectl.
package local

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"

	"github.com/corollary-dev/corollary/pkg/memcluster"
)

const (
	// collectionDelay is the least time from a write until the controllers look at all objects. They take at most a tenth
	// of the time, by waiting longer where that takes long.
	collectionDelay = 20 * time.Millisecond
	collectionShare = 10
	// maxBody is how large a request may be, in bytes, as for an API server.
	maxBody = 3 << 20
	// headerTimeout is how long a client may take to send what it asks for.
	headerTimeout = 10 * time.Second
)

// New returns a cluster that serves the built-in kinds and those of the CustomResourceDefinitions, and has the
// namespaces that every cluster has.
func New(definitions []*unstructured.Unstructured) (*memcluster.Cluster, error) {
	cluster, err := memcluster.New(definitions, memcluster.WithUIDs(func(int) types.UID { return uuid.NewUUID() }))
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"default", "kube-node-lease", "kube-public", "kube-system"} {
		namespace := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace",
			"metadata": map[string]any{"name": name}, "status": map[string]any{"phase": "Active"}}}
		if _, err := cluster.Put(namespace); err != nil {
			return nil, err
		}
	}
	return cluster, nil
}

// roundTripper is a function as a http.RoundTripper.
type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

// Control runs the garbage collector and the namespace controller until ctx is done, and returns a client configuration
// whose writes they see.
func Control(ctx context.Context, cluster *memcluster.Cluster) *rest.Config {
	written := make(chan struct{}, 1)
	go func() {
		for delay := collectionDelay; ; {
			select {
			case <-ctx.Done():
				return
			case <-written:
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(delay):
			}
			begin := time.Now()
			cluster.CollectGarbage()
			delay = max(collectionDelay, collectionShare*time.Since(begin))
		}
	}()
	config := cluster.Config()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			response, err := next.RoundTrip(request)
			if request.Method != http.MethodGet {
				select {
				case written <- struct{}{}:
				default:
				}
			}
			return response, err
		})
	})
	return config
}

// Serve passes requests at a loopback address, such as 127.0.0.1:0, on to the API server of a client configuration,
// until ctx is done. It returns a kubeconfig, whose token every request must have: other users of the machine, and
// pages in a browser, do not know it. The error says that the address is another one, or is taken.
func Serve(ctx context.Context, config *rest.Config, address string) (kubeconfig []byte, err error) {
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, fmt.Errorf("preparing the API server: %w", err)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listening for kubectl: %w", err)
	}
	if at, ok := listener.Addr().(*net.TCPAddr); !ok || !at.IP.IsLoopback() {
		return nil, errors.Join(
			fmt.Errorf("listening for kubectl: %s is not a loopback address: use 127.0.0.1:PORT", address), listener.Close())
	}
	host, _, _ := net.SplitHostPort(listener.Addr().String())
	certificate, key, err := cert.GenerateSelfSignedCertKey(host, []net.IP{net.ParseIP(host)}, nil)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("making a certificate: %w", err), listener.Close())
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("making a certificate: %w", err), listener.Close())
	}
	token := rand.Text()
	server := &http.Server{TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13},
		ReadHeaderTimeout: headerTimeout, Handler: authenticated(token, &httputil.ReverseProxy{
			Transport: transport, FlushInterval: -1, // each event of a watch at once
			Rewrite: func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.URL.Host = "http", r.In.Host },
		})}
	go func() { _ = server.ServeTLS(listener, "", "") }() // it ends when it is closed
	context.AfterFunc(ctx, func() { _ = server.Close() })
	return kubeconfigFor("https://"+listener.Addr().String(), certificate, token)
}

// authenticated answers requests with the token alone.
func authenticated(token string, next http.Handler) http.Handler {
	expected := []byte("Bearer " + token)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), expected) != 1 {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusUnauthorized)
			status := apierrors.NewUnauthorized("the token of the kubeconfig is needed").Status()
			status.APIVersion, status.Kind = "v1", "Status"
			_ = json.NewEncoder(w).Encode(status) // the client is gone if it fails
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		next.ServeHTTP(w, r)
	})
}

// kubeconfigFor connects to a server with that certificate, with a token: clients send none without TLS.
func kubeconfigFor(server string, certificate []byte, token string) ([]byte, error) {
	const name = "corollary-dev"
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: certificate}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: token}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	config.CurrentContext = name
	return clientcmd.Write(*config)
}
