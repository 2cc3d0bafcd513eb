//go:build controlplane

package clusters

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/corollary-dev/corollary/internal/controlplane"
	"github.com/corollary-dev/corollary/pkg/activation"
	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/leadership"
)

// patience is how long a test waits for what should take seconds: long enough for a busy machine.
const patience = 5 * time.Minute

// The times of the lock: short, since a test waits for them, and long enough for a busy machine to renew.
const (
	leaseDuration = 4 * time.Second
	renewDeadline = 2500 * time.Millisecond
	retryPeriod   = 400 * time.Millisecond
)

var widgets = schema.GroupVersionResource{Group: "tools.example.com", Version: "v1", Resource: "widgets"}

const operatorConfig = `apiVersion: corollary.dev/v1alpha1
kind: Operator
metadata: {name: widgets}
watch: {apiVersion: tools.example.com/v1, kind: Widget, namespaces: [NS]}
downstreams:
  - name: config
    apiVersion: v1
    kind: ConfigMap
    template: |
      metadata: {name: "{{ .metadata.name }}"}
      data: {color: "{{ .spec.color }}"}
conventions:
  fieldManager: widgets
  labels: {tools.example.com/managed-by: widgets}
  hash: {annotation: tools.example.com/hash}
  activationToken: {annotation: tools.example.com/token}
status: {conditions: {ready: Ready}}
guard: {maxDeleted: 100%}
retry: {minDelay: 1s, maxDelay: 2s}
`

// service is a lock service.
type service interface {
	// Addr is where it listens.
	Addr() string
	// Config is its part of an Activation, for a client that reaches it at addr, and a lock of that name.
	Config(t *testing.T, addr, name string) string
	// Restart kills it and starts it again with its data. It is nil if that is not possible.
	Restart() func(t *testing.T)
}

// direct is a service that each cluster reaches at an address of its own, past the proxy.
type direct interface{ Reach(cluster string) string }

// world is a lock service and two clusters that share it.
type world struct {
	t        *testing.T
	ns       string
	service  service
	lock     leadership.Store
	clusters []*cluster
	random   *rand.Rand
	log      *Timeline
	watch    *observer
	written  []Write // as far as the audit logs have been read
	healed   time.Time
}

// cluster is one of them: its operator process, which is started again whenever it ends, and its network to the lock service.
type cluster struct {
	*world
	name, user string
	proxy      *Proxy
	dir        string
	client     dynamic.ResourceInterface
	audited    int64 // how far the audit log of its API server has been read

	mu      sync.Mutex
	process *exec.Cmd
	stopped bool
}

// newWorld starts the processes of both clusters, with one more config for each if more is given.
func newWorld(t *testing.T, s service, seed uint64, more ...func(ns, cluster string) string) *world {
	t.Helper()
	name := strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(t.Name()))
	w := &world{t: t, ns: "w" + strconv.FormatUint(seed%1000000, 36) + name, service: s, log: &Timeline{},
		random: rand.New(rand.NewPCG(seed, 0))}
	for _, name := range clusterNames {
		c := w.newCluster(name)
		for _, text := range more {
			w.write(c.dir, "more.yaml", text(w.ns, name))
		}
		w.clusters = append(w.clusters, c)
	}
	w.lock = w.open(t.TempDir(), s.Addr(), "observer")
	for _, c := range w.clusters {
		go c.supervise()
		t.Cleanup(c.stop)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var load sync.WaitGroup
	for _, c := range w.clusters {
		load.Go(func() { c.load(ctx) })
	}
	w.watch = &observer{lock: w.open(t.TempDir(), s.Addr(), "observer"), holds: map[leadership.Token]*activation.State{}}
	load.Go(func() { w.watch.run(ctx) })
	t.Cleanup(func() { cancel(); load.Wait() })
	return w
}

// open returns the lock as a client sees it that reaches the service at addr.
func (w *world) open(dir, addr, identity string) leadership.Store {
	w.t.Helper()
	w.writeActivation(dir, addr, identity)
	files, errs := config.LoadActivations(config.Options{Files: []string{dir}}, nil)
	if len(errs) > 0 {
		w.t.Fatal(errs)
	}
	store, err := activation.Open(files[0])
	if err != nil {
		w.t.Fatal(err)
	}
	return store
}

func (w *world) writeActivation(dir, addr, identity string) {
	w.t.Helper()
	text := fmt.Sprintf("apiVersion: corollary.dev/v1alpha1\nkind: Activation\nmetadata: {name: global}\nidentity: %s\nleaseDuration: %s\n"+
		"renewDeadline: %s\nretryPeriod: %s\n%s", identity, leaseDuration, renewDeadline, retryPeriod, w.service.Config(w.t, addr, "global"))
	w.write(dir, "activation.yaml", text)
}

func (w *world) write(dir, name, text string) {
	w.t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) newCluster(name string) *cluster {
	w.t.Helper()
	plane := planes[name]
	proxy, err := NewProxy(w.service.Addr())
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = proxy.Close() })
	c := &cluster{world: w, name: name, user: name + "-of-" + w.ns, proxy: proxy, dir: w.t.TempDir()}
	text := strings.ReplaceAll(operatorConfig, "NS", w.ns)
	if _, ok := w.service.(*dnsService); ok {
		text = strings.ReplaceAll(text, "  activationToken: {annotation: tools.example.com/token}\n", "") // a name has none
	}
	w.write(c.dir, "operator.yaml", text)
	addr := proxy.Addr()
	if d, ok := w.service.(direct); ok {
		addr = d.Reach(name)
	}
	w.writeActivation(c.dir, addr, name)
	kubeconfig, err := controlplane.Kubeconfig(plane.Config())
	if err != nil {
		w.t.Fatal(err)
	}
	w.write(c.dir, "kubeconfig", string(kubeconfig))
	client, err := dynamic.NewForConfig(plane.Config())
	if err != nil {
		w.t.Fatal(err)
	}
	namespace := &unstructured.Unstructured{}
	namespace.SetAPIVersion("v1")
	namespace.SetKind("Namespace")
	namespace.SetName(w.ns)
	if _, err := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).
		Create(w.t.Context(), namespace, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
	c.client = client.Resource(widgets).Namespace(w.ns)
	return c
}

// supervise starts the operator again and again, as Kubernetes would.
func (c *cluster) supervise() {
	for {
		self, err := os.Executable()
		if err != nil {
			c.t.Error(err)
			return
		}
		p := exec.Command(self, "run", "-c", c.dir, "--kubeconfig", filepath.Join(c.dir, "kubeconfig"),
			"--as", c.user, "--as-group", "system:masters",
			"--metrics-bind-address", "0", "--health-probe-bind-address", "0", "--reload-interval", "0")
		p.Env = append(os.Environ(), asCommand+"=1")
		p.Stderr = &lines{to: func(line string) { c.log.Line(c.name, line) }}
		c.mu.Lock()
		if c.stopped {
			c.mu.Unlock()
			return
		}
		err = p.Start()
		c.process = p
		c.mu.Unlock()
		if err != nil {
			c.t.Error(err)
			return
		}
		_ = p.Wait()
		<-time.After(300 * time.Millisecond)
	}
}

func (c *cluster) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped = true
	if c.process != nil && c.process.Process != nil {
		_ = c.process.Process.Signal(syscall.SIGCONT)
		_ = c.process.Process.Kill()
	}
}

func (c *cluster) signal(s syscall.Signal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.process != nil && c.process.Process != nil {
		_ = c.process.Process.Signal(s)
	}
}

// load changes Widgets all the time, so that the active cluster has something to write.
func (c *cluster) load(ctx context.Context) {
	for i := 0; ctx.Err() == nil; i++ {
		body := fmt.Sprintf(`{"apiVersion":"tools.example.com/v1","kind":"Widget","metadata":{"name":"w%d"},"spec":{"color":"c%d"}}`, i%20, i)
		force := true
		o := metav1.PatchOptions{FieldManager: "load", Force: &force}
		_, err := c.client.Patch(ctx, fmt.Sprintf("w%d", i%20), types.ApplyPatchType, []byte(body), o)
		if err != nil && ctx.Err() == nil {
			c.t.Errorf("changing a Widget in %s: %v", c.name, err)
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(60 * time.Millisecond):
		}
	}
}

// lines hands on what is written, line by line.
type lines struct {
	rest string
	to   func(line string)
}

func (l *lines) Write(data []byte) (int, error) {
	l.rest += string(data)
	for {
		line, rest, ok := strings.Cut(l.rest, "\n")
		if !ok {
			return len(data), nil
		}
		l.to(line)
		l.rest = rest
	}
}

// writes are all writes that the API servers received from the operators.
func (w *world) writes() []Write {
	w.t.Helper()
	for _, c := range w.clusters {
		events, offset, err := planes[c.name].ReadAuditFrom(c.audited)
		if err != nil {
			w.t.Fatal(err)
		}
		c.audited = offset
		for _, e := range events {
			if e.ImpersonatedUser == nil || e.ImpersonatedUser.Username != c.user || !mutates(e) {
				continue
			}
			write := Write{At: e.Received, Cluster: c.name, Token: NoToken, What: e.Verb + " " + e.RequestURI}
			var body struct {
				Metadata struct {
					Annotations map[string]string `json:"annotations"`
				} `json:"metadata"`
			}
			if len(e.Object) > 0 && json.Unmarshal(e.Object, &body) == nil && body.Metadata.Annotations["tools.example.com/token"] != "" {
				write.Token, err = strconv.ParseInt(body.Metadata.Annotations["tools.example.com/token"], 10, 64)
				if err != nil {
					w.t.Error(err)
				}
			}
			w.written = append(w.written, write)
		}
	}
	slices.SortFunc(w.written, func(a, b Write) int { return a.At.Compare(b.At) })
	return w.written
}

func mutates(e controlplane.AuditEvent) bool {
	at, err := url.ParseRequestURI(e.RequestURI)
	switch {
	case err != nil, e.ObjectRef == nil, at.Query().Get("dryRun") != "", e.ObjectRef.Resource == "leases":
		return false
	}
	return slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, e.Verb)
}

// state reads the lock.
func (w *world) state() *activation.State {
	w.t.Helper()
	var s *activation.State
	eventually(w.t, "the lock cannot be read", func() bool {
		var err error
		s, err = activation.Read(w.t.Context(), w.lock)
		return err == nil
	})
	return s
}

// active is the cluster whose operator holds the lock and writes, and the other one, which runs too.
func (w *world) active() (active, standby *cluster) {
	w.t.Helper()
	eventually(w.t, "no cluster is active", func() bool {
		s := w.state()
		at := slices.IndexFunc(w.clusters, func(c *cluster) bool { return c.name == s.Identity })
		token, acts := w.log.Active(s.Identity)
		if s.Holder == "" || s.Asked || at < 0 || !acts || token != s.Token.String() {
			return false
		}
		active, standby = w.clusters[at], w.clusters[1-at]
		return w.log.Running(standby.name)
	})
	return active, standby
}

// wrote reports whether a cluster has written with a token of at least that since a moment, and when it first did.
func (w *world) wrote(c *cluster, since time.Time, least leadership.Token) (time.Time, bool) {
	for _, x := range w.writes() {
		if x.Cluster == c.name && x.At.After(since) && x.Token >= int64(least) {
			return x.At, true
		}
	}
	return time.Time{}, false
}

func eventually(t *testing.T, why string, condition func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !condition(); {
		if time.Now().After(end) {
			t.Fatalf("%s after %s", why, patience)
		}
		<-time.After(50 * time.Millisecond)
	}
}
