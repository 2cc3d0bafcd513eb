//go:build controlplane

package engine_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// killedAtBefore kills it in the middle of deletions with deletion.before. Each deletion has one object made for it, whatever
// happens, and no downstream goes before the outcome of that is recorded; at last nothing is left.
func killedAtBefore(t *testing.T, binary string) {
	t.Helper()
	ns, name := testkit.Namespace(t), testkit.Unique(t)
	conf := replaceOnce(t, withBefore(ns, name), "deletion:\n", "deletion:\n  wait: true\n")
	// A name that is another one at each reconciliation: nothing but the record tells what has been made already.
	conf = replaceOnce(t, conf, "{{ .metadata.name }}-drain", "{{ .metadata.name }}-{{ .metadata.resourceVersion }}-drain")
	p := newProgram(t, binary, conf)
	story := follow(t, ns)
	stop := make(chan struct{})
	var busy, working sync.WaitGroup
	random := rand.New(rand.NewPCG(3, 4))
	busy.Go(func() { comeAndGo(t, random, ns, stop) })
	done := make(chan struct{})
	working.Go(func() { drainAll(t, ns, done) })
	endBusy := sync.OnceFunc(func() { close(stop); busy.Wait() })
	endWork := sync.OnceFunc(func() { close(done); working.Wait() })
	t.Cleanup(func() { endBusy(); endWork() })
	p.killAgainAndAgain(15)
	endBusy()
	for _, w := range testkit.List(t, widgets, ns, "") {
		testkit.Delete(t, widgets, ns, w.GetName())
	}
	_, kill := p.run()
	testkit.Eventually(t, 3*patience, func() (bool, string) {
		left, made := testkit.List(t, widgets, ns, ""), testkit.List(t, configMaps, ns, selector(name))
		var why []string
		for _, w := range left {
			_, reason, message := condition(&w, "Ready")
			why = append(why, w.GetName()+": "+reason+": "+message)
		}
		return len(left)+len(made) == 0, fmt.Sprintf("%d Widgets and %d ConfigMaps are left: %s", len(left), len(made), strings.Join(why, "; "))
	})
	endWork()
	kill()
	// What comes last is told last, of each kind.
	testkit.Apply(t, ns, widget("end", "{}"))
	testkit.Apply(t, ns, "{apiVersion: v1, kind: ConfigMap, metadata: {name: end}}")
	testkit.Eventually(t, patience, func() (bool, string) { return story.ended() == 2, "a watch has not told of everything" })
	story.judge(t)
}

// comeAndGo creates and deletes Widgets until it is stopped.
func comeAndGo(t *testing.T, random *rand.Rand, ns string, stop chan struct{}) {
	for i := 0; ; i++ {
		select {
		case <-stop:
			return
		case <-time.After(10 * time.Millisecond):
		}
		name := fmt.Sprintf("w-%d", random.IntN(30))
		if random.IntN(3) == 0 {
			testkit.Delete(t, widgets, ns, name)
			continue
		}
		_, _ = testkit.TryApply(t, ns, widget(name, fmt.Sprintf(`{data: {key: "%d"}}`, i))) // it may be being deleted
	}
}

// drainAll does the work of the deletion.before objects: some fail at first.
func drainAll(t *testing.T, ns string, done chan struct{}) {
	client := testkit.Dynamic(t).Resource(configMaps).Namespace(ns)
	for {
		select {
		case <-done:
			return
		case <-time.After(30 * time.Millisecond):
		}
		for _, cm := range testkit.List(t, configMaps, ns, "") {
			have, _, _ := unstructured.NestedString(cm.Object, "data", "done")
			if !strings.HasSuffix(cm.GetName(), "-drain") || have == "yes" || rand.IntN(3) > 0 {
				continue
			}
			patch := drainDone
			if have == "" && rand.IntN(4) == 0 {
				patch = drainFailed
			}
			_, _ = client.Patch(context.Background(), cm.GetName(), types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "worker"})
		}
	}
}

// story is what happened, by the uid of the Widget: the API server's versions tell the order.
type story struct {
	mu       sync.Mutex
	before   map[string]map[types.UID]bool // what was made by deletion.before
	outcomes map[string]uint64             // when the outcome was recorded first
	gone     map[string]uint64             // when the deletion of the downstream began
	unheld   map[string]bool               // the API server did not wait for the finalizer
	events   map[string][]string           // all that was seen, for whoever looks into a failure
	ends     int                           // kinds that are told of to the end
	broken   []string
}

// follow watches everything that happens in a namespace until the test ends.
func follow(t *testing.T, ns string) *story {
	t.Helper()
	s := &story{before: map[string]map[types.UID]bool{}, outcomes: map[string]uint64{}, gone: map[string]uint64{},
		unheld: map[string]bool{}, events: map[string][]string{}}
	ctx, cancel := context.WithCancel(context.Background())
	var following sync.WaitGroup
	t.Cleanup(func() { cancel(); following.Wait() })
	for gvr, take := range map[schema.GroupVersionResource]func(watch.EventType, *unstructured.Unstructured, uint64){
		widgets: s.widget, configMaps: s.configMap,
	} {
		events := watching(ctx, t, testkit.Dynamic(t), gvr, ns)
		following.Go(func() {
			for e := range events.ResultChan() {
				u, ok := e.Object.(*unstructured.Unstructured)
				version, err := strconv.ParseUint(versionOf(u), 10, 64)
				if !ok || err != nil {
					s.mu.Lock()
					s.broken = append(s.broken, fmt.Sprintf("a watch broke: %v", e))
					s.mu.Unlock()
					return
				}
				s.mu.Lock()
				if u.GetName() == "end" {
					s.ends++
				} else {
					take(e.Type, u, version)
				}
				s.mu.Unlock()
			}
		})
	}
	return s
}

// wasUnheld tells whether the Widget of that uid went although a finalizer had been added to it.
func (s *story) wasUnheld(uid string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.unheld[uid]
}

// all is everything that was seen.
func (s *story) all() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	for uid, events := range s.events {
		fmt.Fprintf(&b, "%s:\n%s\n", uid, strings.Join(events, "\n"))
	}
	return b.String()
}

func (s *story) ended() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ends
}

func versionOf(u *unstructured.Unstructured) string {
	if u == nil {
		return ""
	}
	return u.GetResourceVersion()
}

func watching(ctx context.Context, t *testing.T, client dynamic.Interface, gvr schema.GroupVersionResource, ns string) watch.Interface {
	t.Helper()
	list, err := client.Resource(gvr).Namespace(ns).List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// The API server ends a watch that does not keep up, as on a busy machine; it is taken up again where it ended.
	watcher := &cache.ListWatch{WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
		return client.Resource(gvr).Namespace(ns).Watch(ctx, o)
	}}
	events, err := watchtools.NewRetryWatcherWithContext(ctx, list.GetResourceVersion(), watcher)
	if err != nil {
		t.Fatal(err)
	}
	return events
}

// tell keeps what was seen of a Widget or of what is its own.
func (s *story) tell(uid string, kind watch.EventType, u *unstructured.Unstructured) {
	s.events[uid] = append(s.events[uid], fmt.Sprintf("%s %s %s %s: finalizers %v, deleting %t, before %v", u.GetResourceVersion(), kind,
		u.GetKind(), u.GetName(), u.GetFinalizers(), u.GetDeletionTimestamp() != nil, beforeItem(u)["state"]))
}

func (s *story) widget(kind watch.EventType, u *unstructured.Unstructured, version uint64) {
	uid := string(u.GetUID())
	s.tell(uid, kind, u)
	// A deletion that the API server has begun goes through although a finalizer is added meanwhile: it looks for finalizers
	// once, and then asks the storage for the uid alone. Nobody can hold such an object; the garbage collector cleans up.
	if kind == watch.Deleted && u.GetDeletionTimestamp() == nil && len(u.GetFinalizers()) > 0 {
		s.unheld[uid] = true
	}
	if beforeItem(u)["state"] == "BeforeFinished" && s.outcomes[uid] == 0 {
		s.outcomes[uid] = version
	}
}

func (s *story) configMap(kind watch.EventType, u *unstructured.Unstructured, version uint64) {
	for _, owner := range u.GetOwnerReferences() {
		uid := string(owner.UID)
		s.tell(uid, kind, u)
		switch {
		case strings.HasSuffix(u.GetName(), "-drain"):
			if s.before[uid] == nil {
				s.before[uid] = map[types.UID]bool{}
			}
			s.before[uid][u.GetUID()] = true
		case (kind == watch.Deleted || u.GetDeletionTimestamp() != nil) && s.gone[uid] == 0:
			s.gone[uid] = version
		}
	}
}

func (s *story) judge(t *testing.T) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.broken {
		t.Error(b)
	}
	for uid, made := range s.before {
		if len(made) != 1 {
			t.Errorf("for Widget %s %d objects were made", uid, len(made))
		}
	}
	for uid, at := range s.gone {
		if recorded := s.outcomes[uid]; !s.unheld[uid] && (recorded == 0 || recorded > at) {
			t.Errorf("the downstream of Widget %s went at %d, its outcome was recorded at %d:\n%s", uid, at, recorded, strings.Join(s.events[uid], "\n"))
		}
	}
	t.Logf("%d deletion.before objects were made, %d downstreams deleted", len(s.before), len(s.gone))
	if len(s.before) < 10 || len(s.gone) < 10 { // a busy machine does less in the time
		t.Errorf("%d deletion.before objects, %d downstreams: too little happened to say anything", len(s.before), len(s.gone))
	}
}
