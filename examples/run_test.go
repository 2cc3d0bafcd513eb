package examples_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/engine"
)

// operator is an engine at work in this process.
type operator struct {
	// Counter has the requests that it has sent.
	*testkit.Counter

	t     *testing.T
	stop  func()
	ended func() // is called once it has stopped; nil for nothing
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
func launch(t *testing.T, cfg *rest.Config, files []*load.File) (e *engine.Engine, stop func()) {
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

// halt stops the engine and waits for its end.
func (o *operator) halt() {
	if o.stop == nil {
		return
	}
	o.stop()
	o.stop = nil
	if o.ended != nil {
		o.ended()
	}
}

// quiet is how long an engine that has sent nothing is taken to have nothing to do, at least: it answers what it sees
// within milliseconds.
const quiet = 1500 * time.Millisecond

// idle waits until the engine sends no more requests: it has done all it is going to do. On a busy machine it is given
// the time in which it could have done so several times over.
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
