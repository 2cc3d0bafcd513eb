//go:build controlplane

package examples_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/corollary-dev/corollary/internal/controlplane"
	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/engine"
)

// The tests of single examples run in parallel, once TestExamplesOnACluster, which runs them all, is over: two processes
// with one config would be in each other's way.

func TestMain(m *testing.M) {
	crds, err := filepath.Glob("configs/*/crd.yaml")
	if err != nil {
		panic(err) // the pattern is malformed
	}
	log.SetLogger(logr.Discard())
	testkit.Main(m, testkit.WithCRDs(crds...),
		testkit.WithControllers(controlplane.GarbageCollector, controlplane.Namespaces, controlplane.Deployments),
		testkit.WithParallel(8))
}

// operator is an engine at work in this process.
type operator struct {
	// Counter has the requests that it has sent.
	*testkit.Counter

	t       *testing.T
	account *account
	stop    func()
}

// runExample runs an example's config, just as it is.
func runExample(t *testing.T, name string) *operator {
	t.Helper()
	return operate(t, example{filepath.Join("configs", name)}.config())
}

// operate runs configs until the test ends or halt is called, with no more rights than `generate rbac` derives from them. It
// returns once they are at work.
func operate(t *testing.T, paths ...string) *operator {
	t.Helper()
	files, errs := config.Load(config.Options{Files: paths})
	if len(errs) > 0 {
		t.Fatalf("the configs cannot run:\n%v", errs)
	}
	o := &operator{Counter: testkit.NewCounter(), t: t, account: grant(t, files)}
	e, stop := launch(t, o.Wrap(o.account.config(t)), files)
	o.stop = stop
	t.Cleanup(o.halt)
	awaitReady(t, e)
	return o
}

// awaitReady waits until an engine's operators are at work.
func awaitReady(t *testing.T, e *engine.Engine) {
	t.Helper()
	testkit.Eventually(t, patience, func() (bool, string) {
		err := e.Ready(nil)
		return err == nil, fmt.Sprint(err)
	})
}

// launch starts an engine, and returns what stops it and waits for its end.
func launch(t *testing.T, cfg *rest.Config, files []*config.File) (e *engine.Engine, stop func()) {
	t.Helper()
	logger := logFor(t)
	mgr, err := manager.New(cfg, manager.Options{Logger: logger, Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		t.Fatal(err)
	}
	if e, err = engine.New(cfg, mgr, files, engine.Options{DrainTimeout: patience, Log: logger}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("the engine ended with: %v", err)
		}
	})
	t.Cleanup(stop)
	return e, stop
}

// halt stops the engine, waits for its end, and sees that it lacked no right.
func (o *operator) halt() {
	if o.stop == nil {
		return
	}
	o.stop()
	o.stop = nil
	for _, refused := range o.lacked() {
		o.t.Errorf("the derived rights do not suffice: %s is forbidden", refused)
	}
}

// quiet is how long an engine that has sent nothing is taken to have nothing to do, at least: it answers what it sees within
// milliseconds.
const quiet = 1500 * time.Millisecond

// idle waits until the engine sends no more requests: it has done all it is going to do. On a busy machine it is given the
// time in which it could have done so several times over.
func (o *operator) idle() {
	o.t.Helper()
	last, since, enough := -1, time.Now(), quiet
	testkit.Eventually(o.t, patience, func() (bool, string) {
		if n := o.Total(); n != last {
			last, since = n, time.Now()
		}
		if time.Since(since) > enough {
			enough = max(quiet, 5*testkit.Lag(o.t))
		}
		return o.Total() == last && time.Since(since) > enough, "requests still come"
	})
}

// writes counts the requests that could change an object of a resource in a namespace.
func (o *operator) writes(resource, namespace string) int {
	return len(o.Requests(testkit.Request.Mutating, func(r testkit.Request) bool { return r.Resource == resource && r.Namespace == namespace }))
}

// logFor keeps what an engine logs and shows it where the test fails.
func logFor(t *testing.T) logr.Logger {
	var mu sync.Mutex
	var text bytes.Buffer
	t.Cleanup(func() {
		mu.Lock()
		defer mu.Unlock()
		if t.Failed() {
			t.Logf("the engine logged:\n%s", &text)
		}
	})
	return funcr.New(func(prefix, args string) {
		mu.Lock()
		defer mu.Unlock()
		text.WriteString(prefix + " " + args + "\n")
	}, funcr.Options{Verbosity: 1})
}

// changed writes an example's config with some of its text replaced (old, new, old, new, …) and returns the file.
func changed(t *testing.T, name string, oldnew ...string) string {
	t.Helper()
	text := string(read(t, example{filepath.Join("configs", name)}.path("operator.yaml")))
	for i := 0; i < len(oldnew); i += 2 {
		if !strings.Contains(text, oldnew[i]) {
			t.Fatalf("the config of %s does not have %q", name, oldnew[i])
		}
	}
	path := filepath.Join(t.TempDir(), "operator.yaml")
	if err := os.WriteFile(path, []byte(strings.NewReplacer(oldnew...).Replace(text)), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
