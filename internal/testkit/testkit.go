// Package testkit provides a real API server for tests: one control plane for each test package, a namespace for each
// test, and helpers to create, read and wait for objects, to count requests and to make them fail. Only tests import
// it.
//
// A package that uses it has one file with
//
//	//go:build controlplane
//
//	func TestMain(m *testing.M) { testkit.Main(m) }
//
// and the same build tag on every test that needs the API server, so that `go test ./...` needs none and `make test`,
// which sets the tag, runs all. Tests of one package may run in parallel: they share the API server and the
// cluster-scoped objects, which therefore need unique names.
package testkit

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/corollary-dev/corollary/internal/controlplane"
)

// manager is the field manager of the helpers' writes.
const manager = "test"

// running is the control plane of this test binary, set by Main.
var running *controlplane.ControlPlane

// Option changes the control plane that Main starts.
type Option func(*options) error

type options struct {
	controlplane.Options
	parallel int
}

// WithCRDs installs the CRDs in the YAML files, or in the *.yaml and *.yml files
// of the directories, before the tests run. Paths are relative to the package.
func WithCRDs(paths ...string) Option {
	return func(o *options) error {
		for _, path := range paths {
			texts, err := readYAML(path)
			if err != nil {
				return fmt.Errorf("reading CRDs: %w", err)
			}
			o.CRDs = append(o.CRDs, texts...)
		}
		return nil
	}
}

// WithControllers runs these controllers of kube-controller-manager; by default there are none. The garbage collector
// finds a CRD that is installed later only after up to 30 s: use WithCRDs.
func WithControllers(names ...string) Option {
	return func(o *options) error {
		o.Controllers = append(o.Controllers, names...)
		return nil
	}
}

// WithFeatureGates sets feature gates of the API server, such as Name=true.
func WithFeatureGates(gates ...string) Option {
	return func(o *options) error {
		o.FeatureGates = append(o.FeatureGates, gates...)
		return nil
	}
}

// WithAudit makes the API server keep the log that Audit reads.
func WithAudit() Option {
	return func(o *options) error {
		o.Audit = true
		return nil
	}
}

// WithParallel sets the number of parallel tests, unless -parallel does. Go's default is the number of processors,
// which are idle while tests wait for an API server and for delays.
func WithParallel(tests int) Option {
	return func(o *options) error {
		o.parallel = tests
		return nil
	}
}

// Main starts a control plane, runs the tests of the package, stops the control plane and exits. Call it in TestMain.
func Main(m *testing.M, opts ...Option) {
	code, err := run(m, opts)
	if err != nil {
		fmt.Fprintf(os.Stderr, "testkit: %v\n", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// run is Main without the exit.
func run(m *testing.M, opts []Option) (int, error) {
	var o options
	for _, opt := range opts {
		if err := opt(&o); err != nil {
			return 1, err
		}
	}
	plane, err := controlplane.Start(context.Background(), o.Options)
	if err != nil {
		return 1, err
	}
	running = plane
	if o.parallel > 0 {
		if err := Parallel(o.parallel); err != nil {
			return 1, errors.Join(err, plane.Stop())
		}
	}
	code := m.Run()
	return code, plane.Stop()
}

// Parallel sets -parallel where the command line does not.
func Parallel(tests int) error {
	const name = "test.parallel"
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == name })
	if given {
		return nil
	}
	if err := flag.Set(name, strconv.Itoa(tests)); err != nil {
		return fmt.Errorf("running %d tests at a time: %w", tests, err)
	}
	return nil
}

// plane returns the control plane that Main started.
func plane() *controlplane.ControlPlane {
	if running == nil {
		panic("testkit: no control plane is running: the package needs a TestMain that calls testkit.Main")
	}
	return running
}

// Config returns a new client configuration with all rights and without a rate limit.
func Config(t testing.TB) *rest.Config {
	if c := served(t); c != nil {
		return rest.CopyConfig(c.config)
	}
	return plane().Config()
}

// serving are the API servers that Serve set, as *clients by the name of the test.
var serving sync.Map

// served returns the clients of the API server that Serve set for this test, or for the test that it is part of; nil if
// there is none.
func served(t testing.TB) *clients {
	if t == nil { // for all tests
		return nil
	}
	for name, part := t.Name(), true; part; {
		if c, ok := serving.Load(name); ok {
			return c.(*clients)
		}
		i := strings.LastIndexByte(name, '/')
		name, part = name[:max(i, 0)], i > 0
	}
	return nil
}

// Serve makes the helpers send the requests of this test and its subtests to another API server until it ends. They
// must not use what only a control plane has, such as users and admission.
func Serve(t testing.TB, config *rest.Config) {
	t.Helper()
	ServeAudited(t, config, nil)
}

// ServeAudited is Serve of an API server whose requests the counter has, for Audit.
func ServeAudited(t testing.TB, config *rest.Config, audit *Counter) {
	t.Helper()
	c, err := newClients(config)
	if err != nil {
		t.Fatal(err)
	}
	c.audit = audit
	serving.Store(t.Name(), c)
	t.Cleanup(func() { serving.Delete(t.Name()) })
}

// Kubeconfig writes a kubeconfig file for Config and returns its path. The file is removed when the test ends.
func Kubeconfig(t testing.TB) string {
	t.Helper()
	return KubeconfigFor(t, Config(t))
}

// KubeconfigFor is Kubeconfig for another client configuration, such as one of User.
func KubeconfigFor(t testing.TB, config *rest.Config) string {
	t.Helper()
	text, err := controlplane.Kubeconfig(config)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Dynamic returns a client with all rights.
func Dynamic(t testing.TB) dynamic.Interface {
	t.Helper()
	return shared(t).dynamic
}

// InstallCRDs creates or updates the CRDs in the YAML texts and returns once they can be used, including discovery and
// OpenAPI. They stay until the control plane stops.
func InstallCRDs(t testing.TB, yaml ...string) {
	t.Helper()
	if err := controlplane.InstallCRDs(t.Context(), Config(t), yaml...); err != nil {
		t.Fatal(err)
	}
	shared(t).mapper.Reset()
}

// readYAML returns the texts of a file or of the YAML files in a directory.
func readYAML(path string) ([]string, error) {
	var texts []string
	err := filepath.WalkDir(path, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		extension := filepath.Ext(name)
		if entry.IsDir() || name != path && extension != ".yaml" && extension != ".yml" {
			return nil
		}
		data, err := os.ReadFile(name)
		texts = append(texts, string(data))
		return err
	})
	if err == nil && len(texts) == 0 {
		err = errors.New(path + " holds no YAML file")
	}
	return texts, err
}

// sharedClients are created once for each test binary.
var sharedClients = sync.OnceValues(func() (*clients, error) { return newClients(plane().Config()) })

// shared returns the clients that the helpers use.
func shared(t testing.TB) *clients {
	t.Helper()
	if c := served(t); c != nil {
		return c
	}
	c, err := sharedClients()
	if err != nil {
		t.Fatal(err)
	}
	return c
}
