//go:build controlplane

package clusters

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/corollary-dev/corollary/internal/controlplane"
	"github.com/corollary-dev/corollary/pkg/activation"
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

// cluster is one of them: its operator process, and its network to the lock service.
type cluster struct {
	*world
	*operator
	name, user string
	proxy      *Proxy
	client     dynamic.ResourceInterface
	audited    int64 // how far the audit log of its API server has been read
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
			write(w.t, c.dir, "more.yaml", text(w.ns, name))
		}
		w.clusters = append(w.clusters, c)
	}
	w.lock = openAs(t, "observer", w.short(s.Addr()))
	for _, c := range w.clusters {
		c.join()
	}
	ctx, cancel := context.WithCancel(t.Context())
	var load sync.WaitGroup
	for _, c := range w.clusters {
		load.Go(func() { c.load(ctx) })
	}
	w.watch = &observer{lock: openAs(t, "observer", w.short(s.Addr())), holds: map[leadership.Token]*activation.State{}}
	load.Go(func() { w.watch.run(ctx) })
	t.Cleanup(func() { cancel(); load.Wait() })
	return w
}

// short is the lock with short times, for a client that reaches the service at addr.
func (w *world) short(addr string) string {
	return fmt.Sprintf("leaseDuration: %s\nrenewDeadline: %s\nretryPeriod: %s\n", leaseDuration, renewDeadline, retryPeriod) +
		w.service.Config(w.t, addr, "global")
}

func (w *world) newCluster(name string) *cluster {
	w.t.Helper()
	config := planes[name].Config()
	proxy, err := NewProxy(w.service.Addr())
	must(w.t, err)
	w.t.Cleanup(func() { _ = proxy.Close() })
	user := name + "-of-" + w.ns
	c := &cluster{world: w, name: name, user: user, proxy: proxy, operator: newOperator(w.t, config, func(int) ([]string, func(string)) {
		return []string{"--as", user}, func(line string) { w.log.Line(name, line) }
	})}
	text := strings.ReplaceAll(operatorConfig, "NS", w.ns)
	if _, ok := w.service.(*dnsService); ok {
		text = strings.ReplaceAll(text, "  activationToken: {annotation: tools.example.com/token}\n", "") // a name has none
	}
	write(w.t, c.dir, "operator.yaml", text)
	addr := proxy.Addr()
	if d, ok := w.service.(direct); ok {
		addr = d.Reach(name)
	}
	write(w.t, c.dir, "activation.yaml", activationFile(name, w.short(addr)))
	c.client = inNamespace(w.t, config, w.ns).Resource(widgets).Namespace(w.ns)
	return c
}

// load changes Widgets all the time, so that the active cluster has something to write.
func (c *cluster) load(ctx context.Context) {
	for i := 0; ctx.Err() == nil; i++ {
		body := fmt.Sprintf(`{"apiVersion":"tools.example.com/v1","kind":"Widget","metadata":{"name":"w%d"},"spec":{"color":"c%d"}}`, i%20, i)
		force := true
		o := metav1.PatchOptions{FieldManager: "load", Force: &force}
		_, err := c.client.Patch(ctx, fmt.Sprintf("w%d", i%20), types.ApplyPatchType, []byte(body), o)
		if err != nil && ctx.Err() == nil {
			c.world.t.Errorf("changing a Widget in %s: %v", c.name, err)
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(60 * time.Millisecond):
		}
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
