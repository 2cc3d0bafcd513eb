// Package controlplane runs a Kubernetes control plane on this machine, for
// tests and demonstrations: etcd and kube-apiserver, and the controllers of
// kube-controller-manager that are asked for. There is no scheduler and no
// kubelet, so no container ever runs. It is not for production, nor for the
// operator itself: only tests and the programs below hack import it.
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

// Controllers of kube-controller-manager, by the names that its --controllers
// flag takes.
const (
	GarbageCollector = "garbage-collector-controller"
	Namespaces       = "namespace-controller"
	Deployments      = "deployment-controller"
	ReplicaSets      = "replicaset-controller"
	Jobs             = "job-controller"
	Disruptions      = "disruption-controller"
)

const (
	// startTimeout and stopTimeout bound each component. They are generous: on two
	// busy cores an API server needs ten times as long as on an idle machine.
	startTimeout = 2 * time.Minute
	stopTimeout  = 2 * time.Minute

	// startAttempts is how often etcd and kube-apiserver are started, with other
	// ports each time: somebody else may take a port after it was found free.
	startAttempts = 3

	// parentEnv and dirEnv tell a component of hack/controlplane to end, and to
	// remove the scratch directory, when this process dies without calling Stop.
	parentEnv = "CONTROLPLANE_PARENT"
	dirEnv    = "CONTROLPLANE_DIR"

	// attachEnv is envtest's own variable: the components' output goes to stderr.
	attachEnv = "KUBEBUILDER_ATTACH_CONTROL_PLANE_OUTPUT"
)

// Options say what to start. The zero value is etcd and kube-apiserver from
// where assets.Find finds them.
type Options struct {
	// Assets is the directory that holds the binaries; empty: assets.Find.
	Assets string
	// CRDs are YAML documents with CustomResourceDefinitions, installed before the
	// controllers start: the garbage collector looks for new kinds only every 30 s.
	CRDs []string
	// Controllers are those that kube-controller-manager runs, as its --controllers
	// flag names them; none: it is not started.
	Controllers []string
	// Audit makes the API server log every request, to be read by ReadAudit.
	Audit bool
	// EtcdQuota is the size in bytes at which etcd refuses to grow; 0: its default.
	EtcdQuota int64
	// Output receives what the components print; nil: it is thrown away, save for
	// the end of it, which goes into Start's error.
	Output io.Writer
}

// starting lets one control plane start at a time: what markChildren says to the
// components stands in the environment, which is the whole process'.
var starting sync.Mutex

// ControlPlane is a running control plane. Its methods may be called by several
// goroutines at once; Stop ends it.
type ControlPlane struct {
	dir      string // scratch space; Stop removes it
	server   *envtest.ControlPlane
	admin    *rest.Config
	managers []*process
	audit    string // path of the audit log, "" without one
	users    sync.Mutex
}

// Start starts a control plane and returns once it serves requests and every
// CRD can be used. RBAC is on. Whoever starts one stops it.
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

// start brings up one component after the other. What it has brought up when it
// fails, Stop takes down.
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

// Config returns a fresh copy of a client configuration that may do everything,
// as fast as the server answers.
func (c *ControlPlane) Config() *rest.Config {
	return rest.CopyConfig(c.admin)
}

// EtcdURL is where clients reach etcd, without TLS.
func (c *ControlPlane) EtcdURL() string { return c.server.Etcd.URL.String() }

// User returns a client configuration for a user who has no rights but those
// that RBAC gives to the name and the groups.
func (c *ControlPlane) User(name string, groups ...string) (*rest.Config, error) {
	c.users.Lock() // certificates are numbered, and envtest does not guard the number
	defer c.users.Unlock()
	user, err := c.server.AddUser(envtest.User{Name: name, Groups: groups}, nil)
	if err != nil {
		return nil, fmt.Errorf("adding user %s: %w", name, err)
	}
	return unlimited(user.Config()), nil
}

// unlimited takes off client-go's limit of requests for each second.
func unlimited(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = -1, 0
	return config
}

// markChildren makes the components that are started from now on end with this
// process, even if it is killed.
func markChildren(dir string) error {
	if err := os.Setenv(parentEnv, strconv.Itoa(os.Getpid())); err != nil {
		return fmt.Errorf("setting %s: %w", parentEnv, err)
	}
	if err := os.Setenv(dirEnv, dir); err != nil {
		return fmt.Errorf("setting %s: %w", dirEnv, err)
	}
	return nil
}

// unmarkChildren undoes markChildren for what this process starts later.
func unmarkChildren() {
	_ = os.Unsetenv(parentEnv) // it cannot fail for a name without "=" or NUL
	_ = os.Unsetenv(dirEnv)
}
