// Package controlplane runs a Kubernetes control plane on this machine, for tests and demonstrations: etcd,
// kube-apiserver and selected controllers of kube-controller-manager. There is no scheduler and no kubelet, so no
// container ever runs. Only tests and the programs below hack import it.
package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/corollary-dev/corollary/internal/assets"
)

// Controllers of kube-controller-manager, with their names in the --controllers flag.
const (
	GarbageCollector = "garbage-collector-controller"
	Namespaces       = "namespace-controller"
	Deployments      = "deployment-controller"
	ReplicaSets      = "replicaset-controller"
	Jobs             = "job-controller"
	Disruptions      = "disruption-controller"
)

const (
	// startTimeout and stopTimeout limit each component. They are generous: on two busy cores an API server takes ten
	// times as long as on an idle machine.
	startTimeout = 2 * time.Minute
	stopTimeout  = 2 * time.Minute

	// startAttempts is the number of attempts to start etcd and kube-apiserver, each with other ports: a free port may be
	// taken before it is used.
	startAttempts = 3

	// parentEnv and dirEnv tell a component of hack/controlplane to end and to remove the scratch directory when this
	// process dies without calling Stop.
	parentEnv = "CONTROLPLANE_PARENT"
	dirEnv    = "CONTROLPLANE_DIR"

	// attachEnv is envtest's own variable: the components' output goes to stderr.
	attachEnv = "KUBEBUILDER_ATTACH_CONTROL_PLANE_OUTPUT"
)

// Options are the options of Start. The zero value is etcd and kube-apiserver from assets.Find.
type Options struct {
	// Assets is the directory of the binaries; empty: assets.Find.
	Assets string
	// CRDs are YAML documents with CustomResourceDefinitions, installed before the
	// controllers start: the garbage collector looks for new kinds only every 30 s.
	CRDs []string
	// Controllers are the controllers of kube-controller-manager, with their names in the --controllers flag; it is not
	// started if there are none.
	Controllers []string
	// Audit makes the API server log every request, for ReadAudit.
	Audit bool
	// AuditBodies is a resource, such as configmaps or leases.coordination.k8s.io, for which the log has the bodies of
	// requests, too.
	AuditBodies string
	// FeatureGates are feature gates of kube-apiserver, such as Name=true.
	FeatureGates []string
	// EtcdQuota is the maximum size of etcd in bytes; 0: its default.
	EtcdQuota int64
	// Output receives the output of the components; nil: it is discarded, except for its end, which is part of Start's
	// error.
	Output io.Writer
}

// starting allows only one start at a time: markChildren sets environment variables of the whole process.
var starting sync.Mutex

// ControlPlane is a running control plane. Its methods are safe for concurrent use. Stop ends it.
type ControlPlane struct {
	dir      string // scratch space; Stop removes it
	server   *envtest.ControlPlane
	admin    *rest.Config
	managers []*process
	audit    string // path of the audit log, or ""
	users    sync.Mutex
}

// Start starts a control plane and returns once it serves requests and every CRD can be used. RBAC is enabled. The
// caller must stop it.
func Start(ctx context.Context, opts Options) (*ControlPlane, error) {
	binaries := opts.Assets
	if binaries == "" {
		found, err := assets.Find()
		if err != nil {
			return nil, err
		}
		binaries = found
	}
	dir, err := os.MkdirTemp("", "controlplane-")
	if err != nil {
		return nil, fmt.Errorf("creating the control plane's directory: %w", err)
	}
	c := &ControlPlane{dir: dir}
	if err := c.start(ctx, binaries, opts); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

// start starts one component after the other. If it fails, Stop stops those that run.
func (c *ControlPlane) start(ctx context.Context, binaries string, opts Options) error {
	starting.Lock()
	defer starting.Unlock()
	if err := markChildren(c.dir); err != nil {
		return err
	}
	defer unmarkChildren()
	output := newTail(opts.Output)
	if err := c.startServer(ctx, binaries, opts, output); err != nil {
		return fmt.Errorf("starting etcd and kube-apiserver: %w\n%s", err, output)
	}
	if err := InstallCRDs(ctx, c.admin, opts.CRDs...); err != nil {
		return err
	}
	if len(opts.Controllers) == 0 {
		return nil
	}
	manager, err := c.startManager(binaries, opts.Controllers, newTail(opts.Output))
	if err != nil {
		return err
	}
	c.managers = append(c.managers, manager)
	return nil
}

// Stop ends every component and removes their data. It is safe to call on a
// control plane that failed to start.
func (c *ControlPlane) Stop() error {
	var failures []error
	for _, manager := range c.managers {
		failures = append(failures, manager.stop())
	}
	if c.server != nil {
		failures = append(failures, c.server.Stop())
	}
	failures = append(failures, os.RemoveAll(c.dir))
	if err := errors.Join(failures...); err != nil {
		return fmt.Errorf("stopping the control plane: %w", err)
	}
	return nil
}

// RestartServer ends kube-apiserver as a cluster's upgrade does, and starts it again at the same address. etcd goes on.
func (c *ControlPlane) RestartServer() error {
	starting.Lock()
	defer starting.Unlock()
	if err := markChildren(c.dir); err != nil {
		return err
	}
	defer unmarkChildren()
	if err := c.server.APIServer.Stop(); err != nil {
		return fmt.Errorf("stopping kube-apiserver: %w", err)
	}
	c.server.APIServer.Args = nil //nolint:staticcheck // they are derived anew
	if err := c.server.APIServer.Start(); err != nil {
		return fmt.Errorf("starting kube-apiserver again: %w", err)
	}
	return nil
}

// Config returns a new client configuration with all rights and no rate limit.
func (c *ControlPlane) Config() *rest.Config {
	return rest.CopyConfig(c.admin)
}

// EtcdURL returns the address of etcd, without TLS.
func (c *ControlPlane) EtcdURL() string { return c.server.Etcd.URL.String() }

// User returns a client configuration for a user who has only the rights that RBAC gives to the name and the groups.
func (c *ControlPlane) User(name string, groups ...string) (*rest.Config, error) {
	c.users.Lock() // certificates are numbered, and envtest does not lock the number
	defer c.users.Unlock()
	user, err := c.server.AddUser(envtest.User{Name: name, Groups: groups}, nil)
	if err != nil {
		return nil, fmt.Errorf("adding user %s: %w", name, err)
	}
	return unlimited(user.Config()), nil
}

// unlimited removes client-go's rate limit.
func unlimited(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = -1, 0
	return config
}

// markChildren makes components that are started from now on end with this process, even if it is killed.
func markChildren(dir string) error {
	if err := os.Setenv(parentEnv, strconv.Itoa(os.Getpid())); err != nil {
		return fmt.Errorf("setting %s: %w", parentEnv, err)
	}
	if err := os.Setenv(dirEnv, dir); err != nil {
		return fmt.Errorf("setting %s: %w", dirEnv, err)
	}
	return nil
}

// unmarkChildren reverts markChildren for later children of this process.
func unmarkChildren() {
	_ = os.Unsetenv(parentEnv) // it cannot fail for a name without "=" or NUL
	_ = os.Unsetenv(dirEnv)
}
