//go:build controlplane

package clusters

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/corollary-dev/corollary/internal/controlplane"
	"github.com/corollary-dev/corollary/pkg/shards"
)

var (
	objects   = flag.Int("objects", 80, "Widgets of the processes that share shards")
	processes = flag.Int("processes", 3, "processes that share shards")
	changes   = flag.Float64("changes", 20, "changes of Widgets a second")
	filtered  = flag.Bool("filtered", false, "have the API server filter by shard")
	lease     = flag.Duration("lease", 10*time.Second, "lease duration of processes that share shards; the renew deadline is two thirds of it")
)

const (
	virtualShards = 16
	// setID is the Lease of the set, and begins the names of the others.
	setID = "widgets"
	// shardLabel is on each ConfigMap.
	shardLabel = "tools.example.com/shard"
	// finalizer is on each Widget: its ConfigMap is deleted by the process that holds its shard, not by the garbage
	// collector.
	finalizer = "tools.example.com/cleanup"
)

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// set is a control plane and several processes that share shards.
type set struct {
	t       *testing.T
	ns      string
	plane   *controlplane.ControlPlane
	client  *kubernetes.Clientset
	objects dynamic.Interface
	random  *rand.Rand
	log     *Timeline
	members []*member
	mu      sync.Mutex
	// uids are those of the Widgets, with mu held; markers are a Widget of each shard, that the load leaves alone.
	uids    map[string]types.UID
	names   []string
	markers [virtualShards]string
	marked  int
	audit   audited
	pulse   pulse
	sent    atomic.Int64 // changes of the load
	deleted atomic.Int64 // Widgets
}

// member is one process, with its network to the API server. Each time it starts it is another user.
type member struct {
	*set
	*operator
	name  string
	proxy *Proxy
}

func newSet(t *testing.T) *set {
	t.Helper()
	o := controlplane.Options{CRDs: []string{widgetCRD}, Audit: true, AuditBodies: "leases.coordination.k8s.io"}
	if *filtered {
		o.FeatureGates = []string{"ShardedListAndWatch=true"}
	}
	plane, err := controlplane.Start(t.Context(), o)
	must(t, err)
	s := &set{t: t, ns: "shards", plane: plane, random: rand.New(rand.NewPCG(*seed, 0)), log: &Timeline{}, uids: map[string]types.UID{},
		audit: audited{renewed: map[string]time.Time{}}}
	t.Cleanup(func() {
		if err := plane.Stop(); err != nil {
			t.Error(err)
		}
	})
	s.client, err = kubernetes.NewForConfig(plane.Config())
	must(t, err)
	s.objects = inNamespace(t, plane.Config(), s.ns)
	s.create()
	for i := range *processes + 1 { // the last one only joins when a fault says so
		s.members = append(s.members, s.newMember("p"+strconv.Itoa(i)))
	}
	for _, m := range s.members[:*processes] {
		m.join()
	}
	return s
}

// create creates the Widgets, and chooses the markers.
func (s *set) create() {
	s.t.Helper()
	group := errgroup.Group{}
	group.SetLimit(8)
	for i := range *objects {
		group.Go(func() error { return s.add(s.t.Context(), fmt.Sprintf("w%06d", i)) })
	}
	must(s.t, group.Wait())
	for name := range s.uids {
		if k := s.shardOf(name); s.markers[k] == "" {
			s.markers[k] = name
		} else {
			s.names = append(s.names, name)
		}
	}
	slices.Sort(s.names)
}

// add creates a Widget.
func (s *set) add(ctx context.Context, name string) error {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "tools.example.com/v1", "kind": "Widget",
		"metadata": map[string]any{"name": name}, "spec": map[string]any{"color": "first"}}}
	made, err := s.objects.Resource(widgets).Namespace(s.ns).Create(ctx, u, metav1.CreateOptions{})
	if err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.uids[name] = made.GetUID()
	}
	return err
}

func (s *set) uidOf(name string) types.UID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.uids[name]
}

func (s *set) shardOf(name string) int {
	return shards.Ring{N: virtualShards}.Of(string(s.uidOf(name)))
}

func (s *set) newMember(name string) *member {
	s.t.Helper()
	proxy, err := NewProxy((&leaseService{cfg: s.plane.Config()}).Addr())
	must(s.t, err)
	s.t.Cleanup(func() { _ = proxy.Close() })
	cfg := s.plane.Config()
	cfg.Host = "https://" + proxy.Addr()
	o := newOperator(s.t, cfg, func(n int) ([]string, func(string)) {
		user := fmt.Sprintf("%s.%d", name, n)
		return []string{"--as", user, "--shards", strconv.Itoa(virtualShards), "--leader-elect", "--leader-election-id", setID,
			"--leader-election-namespace", s.ns, "--leader-election-lease-duration", lease.String(),
			"--leader-election-renew-deadline", (*lease * 2 / 3).String(),
			"--leader-election-retry-period", (*lease / 10).String()}, func(line string) { s.log.Line(user, line) }
	})
	write(s.t, o.dir, "operator.yaml", strings.NewReplacer("NS", s.ns, "  activationToken: {annotation: tools.example.com/token}",
		"  shard: {label: "+shardLabel+"}\n  finalizer: "+finalizer+"\n  owner: {reference: false, annotation: tools.example.com/owner}").
		Replace(operatorConfig))
	return &member{set: s, operator: o, name: name, proxy: proxy}
}

// load changes Widgets all the time. While the API server is away, it waits.
func (s *set) load(ctx context.Context) {
	limit := rate.NewLimiter(rate.Limit(*changes), 1)
	random := rand.New(rand.NewPCG(*seed, 1))
	var group errgroup.Group
	group.SetLimit(8)
	for limit.Wait(ctx) == nil {
		name, body := s.names[random.IntN(len(s.names))], fmt.Sprintf(`{"spec":{"color":"c%d"}}`, random.Uint32())
		group.Go(func() error {
			_, err := s.objects.Resource(widgets).Namespace(s.ns).Patch(ctx, name, types.MergePatchType, []byte(body), metav1.PatchOptions{})
			if err == nil {
				s.sent.Add(1)
			}
			return nil
		})
	}
	_ = group.Wait()
}

// churn creates Widgets and deletes them, one for every four changes of others, at most ten a second. It deletes only
// those that have the finalizer: an API server may lose a finalizer that is added while it deletes, and a process that
// dies then leaves the object.
func (s *set) churn(ctx context.Context) {
	limit, client := rate.NewLimiter(rate.Limit(min(*changes/4, 10)), 1), s.objects.Resource(widgets).Namespace(s.ns)
	var made []string
	for n := 0; limit.Wait(ctx) == nil; {
		if n++; n%2 == 0 {
			if name := fmt.Sprintf("n%06d", n); s.add(ctx, name) == nil {
				made = append(made, name)
			}
			continue
		}
		if len(made) == 0 {
			continue
		}
		u, err := client.Get(ctx, made[0], metav1.GetOptions{})
		if apierrors.IsNotFound(err) { // the answer to its deletion was lost
			made = made[1:]
			continue
		}
		if err == nil && slices.Contains(u.GetFinalizers(), finalizer) && client.Delete(ctx, made[0], metav1.DeleteOptions{}) == nil {
			s.deleted.Add(1)
		} else {
			made = append(made, made[0])
		}
		made = made[1:]
	}
}

// settled waits until so many processes hold all shards, have loaded them, and act for each. The Leases alone may show
// a process that has just died.
func (s *set) settled(processes int) {
	s.t.Helper()
	s.shared(processes)
	s.acts()
	s.shared(processes)
}

func (s *set) shared(processes int) {
	s.t.Helper()
	why, done := "", false
	defer func() {
		if !done {
			s.t.Log(why)
		}
	}()
	eventually(s.t, fmt.Sprintf("%d processes do not share all shards", processes), func() bool {
		state, err := shards.Read(s.t.Context(), s.client.CoordinationV1().Leases(s.ns), setID, time.Now())
		if err != nil {
			why = err.Error()
			return false
		}
		why = fmt.Sprintf("%+v", *state)
		holders := map[string]bool{}
		for _, one := range state.Shards {
			if one.Quarantined {
				s.t.Errorf("shard %d is in quarantine: %+v", one.Number, one)
			}
			if !one.Alive || one.Loading {
				return false
			}
			holders[one.Holder] = true
		}
		done = len(state.Shards) == virtualShards && len(holders) == processes
		return done
	})
}

// acts waits until a change of a Widget of each shard has reached its ConfigMap.
func (s *set) acts() {
	s.t.Helper()
	s.marked++
	want := fmt.Sprintf("marked-%d", s.marked)
	each := func(do func(k int, name string)) {
		for k, name := range s.markers {
			if name != "" {
				do(k, name)
			}
		}
	}
	each(func(_ int, name string) {
		eventually(s.t, "a marker cannot be changed", func() bool {
			_, err := s.objects.Resource(widgets).Namespace(s.ns).Patch(s.t.Context(), name, types.MergePatchType,
				[]byte(`{"spec":{"color":"`+want+`"}}`), metav1.PatchOptions{})
			return err == nil
		})
	})
	each(func(k int, name string) {
		eventually(s.t, fmt.Sprintf("no process acts for %s in shard %d", name, k), func() bool {
			u, err := s.objects.Resource(configMaps).Namespace(s.ns).Get(s.t.Context(), name, metav1.GetOptions{})
			if err != nil {
				return false
			}
			color, _, _ := unstructured.NestedString(u.Object, "data", "color")
			return color == want
		})
	})
}

// inSync waits until each Widget has its ConfigMap, and those that were deleted are gone.
func (s *set) inSync() {
	s.t.Helper()
	colors := func(resource schema.GroupVersionResource, o metav1.ListOptions, field string) map[string]string {
		list, err := s.objects.Resource(resource).Namespace(s.ns).List(s.t.Context(), o)
		if err != nil {
			s.t.Fatal(err)
		}
		m := make(map[string]string, len(list.Items))
		for _, u := range list.Items {
			if m[u.GetName()], _, _ = unstructured.NestedString(u.Object, field, "color"); u.GetDeletionTimestamp() != nil {
				m[u.GetName()] = "gone"
			}
		}
		return m
	}
	var wrong []string
	eventually(s.t, "objects are not in sync", func() bool {
		have := colors(configMaps, metav1.ListOptions{LabelSelector: "tools.example.com/managed-by=widgets"}, "data")
		wrong = nil
		for name, color := range colors(widgets, metav1.ListOptions{}, "spec") {
			if have[name] != color {
				wrong = append(wrong, fmt.Sprintf("%s in shard %d: %q, want %q", name, s.shardOf(name), have[name], color))
			}
			delete(have, name)
		}
		for name := range have {
			wrong = append(wrong, name+" is left over")
		}
		return len(wrong) == 0
	})
}

// audited is what an API server has received: accepted writes of processes, and of Leases of shards; and of each
// process when it last renewed its Lease.
type audited struct {
	offset  int64 // how far the log has been read
	writes  []ShardWrite
	takings []Taking
	renewed map[string]time.Time
}

// read goes on reading the log.
func (s *set) read() *audited {
	s.t.Helper()
	events, offset, err := s.plane.ReadAuditFrom(s.audit.offset)
	if err != nil {
		s.t.Fatal(err)
	}
	s.audit.offset = offset
	for _, e := range events {
		if e.ImpersonatedUser == nil || e.ObjectRef == nil || e.ObjectRef.Namespace != s.ns || e.ResponseStatus == nil ||
			e.ResponseStatus.Code >= http.StatusBadRequest {
			continue
		}
		user, ref := e.ImpersonatedUser.Username, e.ObjectRef
		switch {
		case ref.Resource == "leases" && strings.HasPrefix(ref.Name, setID+"-process-") && e.Verb == "update":
			s.audit.renewed[user] = e.Received
		case ref.Resource == "leases":
			if taking, ok := s.taking(e); ok {
				s.audit.takings = append(s.audit.takings, taking)
			}
		case mutates(e) && s.uidOf(ref.Name) != "":
			s.audit.writes = append(s.audit.writes, ShardWrite{e.Received, s.shardOf(ref.Name), user, e.Verb + " " + e.RequestURI})
		}
	}
	return &s.audit
}

// taking reads a write of a shard's Lease.
func (s *set) taking(e controlplane.AuditEvent) (Taking, bool) {
	var body coordinationv1.Lease
	if len(e.Object) == 0 {
		return Taking{}, false
	}
	if err := json.Unmarshal(e.Object, &body); err != nil {
		s.t.Fatal(err)
	}
	number, ok := strings.CutPrefix(body.Name, setID+"-shard-")
	shard, err := strconv.Atoi(number)
	if !ok || err != nil {
		return Taking{}, false
	}
	taking := Taking{Received: e.Received, Done: e.Done, Shard: shard, By: e.ImpersonatedUser.Username,
		Suspect: body.Annotations[setID+"/deaths"] != ""}
	if holder := body.Spec.HolderIdentity; holder != nil && *holder != "" {
		taking.Process = taking.By
	}
	return taking, true
}
