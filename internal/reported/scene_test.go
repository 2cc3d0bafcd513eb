// Package reported_test runs an operator with a cluster in memory, in virtual time, and checks what it says of each
// kind of change: the lines of its log, its events, and the condition Ready.
package reported_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/engine"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/memcluster"
)

// scene runs one operator in virtual time, without lags and faults, and keeps what it says: the lines of its log and
// its events.
type scene struct {
	t       testing.TB
	dir     string
	cluster *memcluster.Cluster
	users   dynamic.Interface

	stop func()
	end  *engine.Engine

	mu     sync.Mutex
	log    bytes.Buffer
	events []string
	writes int // of objects and their status

	refuse func(*http.Request) bool // set while nothing is sent
}

var (
	widgets    = schema.GroupVersionResource{Group: "test.example.com", Version: "v1", Resource: "widgets"}
	configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
)

// play runs f in a new scene, whose operator is not started yet.
func play(t *testing.T, f func(s *scene)) {
	definitions := must.Get(kinds.Definitions("../../testdata/crds/widgets.yaml")).In(t)
	synctest.Test(t, func(t *testing.T) {
		s := &scene{t: t, dir: t.TempDir(), stop: func() {}}
		var err error
		if s.cluster, err = memcluster.New(definitions); err != nil {
			t.Fatal(err)
		}
		if s.users, err = dynamic.NewForConfig(s.cluster.Config()); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"ns", "other"} {
			s.put("{apiVersion: v1, kind: Namespace, metadata: {name: " + name + ", labels: {served: \"yes\"}}}")
		}
		defer func() { s.stop() }()
		f(s)
	})
}

// config writes the operator's config, with the old parts of the text replaced by new ones.
func (s *scene) config(text string, oldNew ...string) {
	s.t.Helper()
	for i := 0; i < len(oldNew); i += 2 {
		if !strings.Contains(text, oldNew[i]) {
			s.t.Fatalf("the config does not contain %q", oldNew[i])
		}
	}
	must.Do(s.t, os.WriteFile(filepath.Join(s.dir, "a.yaml"), []byte(strings.NewReplacer(oldNew...).Replace(text)), 0o600))
}

// start starts a process, after the previous one has stopped, and waits until it rests.
func (s *scene) start() {
	s.t.Helper()
	s.stop()
	files, errs := load.Operators(load.Options{Files: []string{s.dir}})
	if len(errs) > 0 {
		s.t.Fatal(errs)
	}
	logger := zap.New(zap.WriteTo(s), zap.JSONEncoder())
	cfg, grace := s.cluster.Config(), time.Minute
	cfg.Transport = s
	mgr, err := manager.New(cfg, manager.Options{
		Metrics: metricsserver.Options{BindAddress: "0"}, Logger: logger, GracefulShutdownTimeout: &grace,
	})
	if err != nil {
		s.t.Fatal(err)
	}
	if s.end, err = engine.New(cfg, mgr, files, engine.Options{Workers: 2, Log: logger}); err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(s.t.Context())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	s.stop = func() {
		cancel()
		if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
			s.t.Errorf("the engine ended with: %v", err)
		}
		s.stop = func() {}
	}
	s.rest()
}

// reload has the process read the config again, and waits until it rests.
func (s *scene) reload() {
	s.t.Helper()
	files, errs := load.Operators(load.Options{Files: []string{s.dir}})
	if len(errs) > 0 {
		s.t.Fatal(errs)
	}
	s.end.Reload(s.t.Context(), files, errs)
	s.rest()
}

// rest waits until everything is done.
func (s *scene) rest() { <-time.After(20 * time.Second) } // of virtual time

// Write keeps the log.
func (s *scene) Write(line []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.Write(line)
}

// RoundTrip is the operator's connection. It keeps the events, which the cluster does not store.
func (s *scene) RoundTrip(request *http.Request) (*http.Response, error) {
	if !strings.HasSuffix(request.URL.Path, "/events") && !strings.Contains(request.URL.Path, "/events/") {
		if s.refuse != nil && s.refuse(request) {
			return &http.Response{StatusCode: http.StatusForbidden, Request: request, Header: http.Header{}, Body: http.NoBody}, nil
		}
		if request.Method != http.MethodGet {
			s.mu.Lock()
			s.writes++
			s.mu.Unlock()
		}
		return s.cluster.RoundTrip(request)
	}
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return nil, err
	}
	var e struct{ Type, Reason, Note string }
	if err := json.Unmarshal(body, &e); err != nil {
		return nil, err
	}
	if request.Method == http.MethodPost {
		s.mu.Lock()
		s.events = append(s.events, e.Type+" "+e.Reason+": "+e.Note)
		s.mu.Unlock()
	}
	return &http.Response{StatusCode: http.StatusCreated, Request: request, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(bytes.NewReader(body))}, nil
}

// said returns what the operator has said since the last call: the lines of the log about upstreams, the events, and
// the condition Ready of the Widget a.
func (s *scene) said() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []string
	for text := range strings.Lines(s.log.String()) {
		var line map[string]any
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			s.t.Errorf("a line of the log is not JSON: %s", text)
			continue
		}
		if line["upstream"] == nil && line["level"] == "info" {
			continue
		}
		words := []string{"log " + fmt.Sprint(line["level"]) + ": " + fmt.Sprint(line["msg"])}
		for _, key := range slices.Sorted(maps.Keys(line)) {
			if !slices.Contains([]string{"level", "ts", "msg", "operator", "upstream", "downstream"}, key) {
				words = append(words, fmt.Sprintf("%s=%v", key, line[key]))
			}
		}
		all = append(all, strings.Join(words, " "))
	}
	slices.Sort(s.events) // each is sent by itself, so their order means nothing
	for _, e := range s.events {
		all = append(all, "event "+e)
	}
	s.log.Reset()
	s.events, s.writes = nil, 0
	return append(all, s.ready())
}

// ready is the condition Ready of the Widget a.
func (s *scene) ready() string {
	u, err := s.users.Resource(widgets).Namespace("ns").Get(s.t.Context(), "a", metav1.GetOptions{})
	if err != nil {
		return "no Widget"
	}
	list, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, item := range list {
		if c, _ := item.(map[string]any); c["type"] == "Ready" {
			return strings.TrimRight(fmt.Sprintf("Ready %v %v of generation %v/%v: %v", c["status"], c["reason"], c["observedGeneration"],
				u.GetGeneration(), c["message"]), ": ")
		}
	}
	return "no Ready"
}

func (s *scene) object(text string) *unstructured.Unstructured {
	s.t.Helper()
	u := &unstructured.Unstructured{}
	must.Do(s.t, yaml.Unmarshal([]byte(text), &u.Object))
	return u
}

// put stores an object as it is.
func (s *scene) put(text string) {
	s.t.Helper()
	must.Get(s.cluster.Put(s.object(text))).In(s.t)
}

// patch is a merge patch by another field manager, kubectl-edit.
func (s *scene) patch(gvr schema.GroupVersionResource, name, patch string) {
	s.patchAs("kubectl-edit", gvr, name, patch)
}

func (s *scene) patchAs(manager string, gvr schema.GroupVersionResource, name, patch string) {
	s.t.Helper()
	o := metav1.PatchOptions{FieldManager: manager}
	must.Get(s.users.Resource(gvr).Namespace("ns").Patch(s.t.Context(), name, types.MergePatchType, []byte(patch), o)).In(s.t)
}

// apply is a server-side apply by another field manager.
func (s *scene) apply(manager string, gvr schema.GroupVersionResource, text string) {
	s.t.Helper()
	u := s.object(text)
	o := metav1.ApplyOptions{FieldManager: manager, Force: true}
	must.Get(s.users.Resource(gvr).Namespace("ns").Apply(s.t.Context(), u.GetName(), u, o)).In(s.t)
}

func (s *scene) delete(gvr schema.GroupVersionResource, name string) {
	s.t.Helper()
	must.Do(s.t, s.users.Resource(gvr).Namespace("ns").Delete(s.t.Context(), name, metav1.DeleteOptions{}))
}
