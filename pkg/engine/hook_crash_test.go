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

	"github.com/corollary-dev/corollary/internal/testkit"
)

// The real binary is killed again and again in the middle of deletions with a hook. Each deletion has one object made for
// it, whatever happens, and no downstream goes before the outcome of that is recorded; at last nothing is left.
func TestHookKilledAtAnyMoment(t *testing.T) {
	ns, name := testkit.Namespace(t), testkit.Unique(t)
	conf := replaceOnce(t, hooked(ns, name), "deletion:\n", "deletion:\n  wait: true\n")
	// A name that is another one at each look: nothing but the record tells what has been made already.
	conf = replaceOnce(t, conf, "{{ .metadata.name }}-drain", "{{ .metadata.name }}-{{ .metadata.resourceVersion }}-drain")
	run := program(t, conf)
	story := follow(t, ns)
	stop := make(chan struct{})
	var busy, working sync.WaitGroup
	random := rand.New(rand.NewPCG(3, 4))
	busy.Go(func() { comeAndGo(t, random, ns, stop) })
	done := make(chan struct{})
	working.Go(func() { drainAll(t, ns, done) })
	const kills = 15
	for range kills {
		cmd, _ := run()
		<-time.After(time.Duration(600+rand.N(1000)) * time.Millisecond)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	close(stop)
	busy.Wait()
	for _, w := range testkit.List(t, widgets, ns, "") {
		testkit.Delete(t, widgets, ns, w.GetName())
	}
	cmd, log := run()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		if _ = cmd.Wait(); t.Failed() {
			t.Log(log.String())
		}
	})
	testkit.Eventually(t, 3*patience, func() (bool, string) {
		left, made := testkit.List(t, widgets, ns, ""), testkit.List(t, configMaps, ns, selector(name))
		var why []string
		for _, w := range left {
			_, reason, message := condition(&w, "Ready")
			why = append(why, w.GetName()+": "+reason+": "+message)
		}
		return len(left)+len(made) == 0, fmt.Sprintf("%d Widgets and %d ConfigMaps are left: %s", len(left), len(made), strings.Join(why, "; "))
	})
	close(done)
	working.Wait()
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

// drainAll does the hooks' work: some fail at first.
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
	hooks    map[string]map[types.UID]bool // what was made by deletion.before
	outcomes map[string]uint64             // when the outcome was recorded first
	gone     map[string]uint64             // when the deletion of the downstream began
	broken   []string
}

// follow watches everything that happens in a namespace until the test ends.
func follow(t *testing.T, ns string) *story {
	t.Helper()
	s := &story{hooks: map[string]map[types.UID]bool{}, outcomes: map[string]uint64{}, gone: map[string]uint64{}}
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
				take(e.Type, u, version)
				s.mu.Unlock()
			}
		})
	}
	return s
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
	events, err := client.Resource(gvr).Namespace(ns).Watch(ctx, metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
	if err != nil {
		t.Fatal(err)
	}
	return events
}

func (s *story) widget(_ watch.EventType, u *unstructured.Unstructured, version uint64) {
	uid := string(u.GetUID())
	if hookItem(u)["state"] == "HookFinished" && s.outcomes[uid] == 0 {
		s.outcomes[uid] = version
	}
}

func (s *story) configMap(kind watch.EventType, u *unstructured.Unstructured, version uint64) {
	for _, owner := range u.GetOwnerReferences() {
		uid := string(owner.UID)
		switch {
		case strings.HasSuffix(u.GetName(), "-drain"):
			if s.hooks[uid] == nil {
				s.hooks[uid] = map[types.UID]bool{}
			}
			s.hooks[uid][u.GetUID()] = true
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
	for uid, hooks := range s.hooks {
		if len(hooks) != 1 {
			t.Errorf("for Widget %s %d objects were made", uid, len(hooks))
		}
	}
	for uid, at := range s.gone {
		if recorded := s.outcomes[uid]; recorded == 0 || recorded > at {
			t.Errorf("the downstream of Widget %s went at %d, its outcome was recorded at %d", uid, at, recorded)
		}
	}
	t.Logf("%d hooks were run, %d downstreams deleted", len(s.hooks), len(s.gone))
	if len(s.hooks) < 20 || len(s.gone) < 20 {
		t.Errorf("%d hooks, %d downstreams: too little happened to say anything", len(s.hooks), len(s.gone))
	}
}
