package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// startServer starts etcd and kube-apiserver and waits until objects can be created.
func (c *ControlPlane) startServer(ctx context.Context, binaries string, opts Options, output io.Writer) error {
	var failures []error
	for range startAttempts {
		server, err := c.newServer(binaries, opts, output)
		if err != nil {
			return err
		}
		if err := server.Start(); err != nil {
			failures = append(failures, err)
			continue
		}
		c.server = server
		return c.connect(ctx)
	}
	return errors.Join(failures...)
}

// newServer configures etcd and kube-apiserver, with their own directories.
func (c *ControlPlane) newServer(binaries string, opts Options, output io.Writer) (*envtest.ControlPlane, error) {
	data, err := os.MkdirTemp(c.dir, "server-")
	if err != nil {
		return nil, err
	}
	// These paths take precedence over KUBEBUILDER_ASSETS, which assets.Find has read.
	server := &envtest.ControlPlane{
		Etcd: &envtest.Etcd{
			Path:         filepath.Join(binaries, "etcd"),
			DataDir:      filepath.Join(data, "etcd"),
			StartTimeout: startTimeout, StopTimeout: stopTimeout,
			Out: output, Err: output,
		},
		APIServer: &envtest.APIServer{
			Path:         filepath.Join(binaries, "kube-apiserver"),
			CertDir:      filepath.Join(data, "apiserver"),
			StartTimeout: startTimeout, StopTimeout: stopTimeout,
			Out: output, Err: output,
		},
	}
	for _, dir := range []string{server.Etcd.DataDir, server.APIServer.CertDir} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return nil, err
		}
	}
	if opts.EtcdQuota > 0 {
		server.Etcd.Configure().Set("quota-backend-bytes", strconv.FormatInt(opts.EtcdQuota, 10))
	}
	if len(opts.FeatureGates) > 0 {
		server.APIServer.Configure().Set("feature-gates", strings.Join(opts.FeatureGates, ","))
	}
	if opts.Audit {
		return server, c.configureAudit(server.APIServer.Configure(), opts.AuditBodies)
	}
	return server, nil
}

// connect creates the administrator and waits until the API server has created the namespace default, the last step of
// its start.
func (c *ControlPlane) connect(ctx context.Context) error {
	user, err := c.server.AddUser(envtest.User{Name: "admin", Groups: []string{"system:masters"}}, nil)
	if err != nil {
		return fmt.Errorf("adding the administrator: %w", err)
	}
	c.admin = unlimited(user.Config())
	client, err := dynamic.NewForConfig(c.admin)
	if err != nil {
		return fmt.Errorf("creating a client: %w", err)
	}
	namespaces := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"})
	var last error
	err = wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, startTimeout, true,
		func(ctx context.Context) (bool, error) {
			_, last = namespaces.Get(ctx, "default", metav1.GetOptions{})
			return last == nil, nil
		})
	if err != nil {
		return fmt.Errorf("waiting for the namespace default: %w", errors.Join(err, last))
	}
	return nil
}
