//go:build controlplane

package engine_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// The real binary is killed again and again in the middle of creations, changes, renames, moves between namespaces and deletions. When it is left
// alone at last, nothing is lost, nothing doubled, nothing orphaned.
func TestKilledAtAnyMoment(t *testing.T) {
	t.Parallel()
	binary := filepath.Join(t.TempDir(), "corollary")
	if out, err := exec.Command("go", "build", "-buildvcs=false", "-o", binary, "../../cmd/corollary").CombinedOutput(); err != nil {
		t.Fatalf("building: %v\n%s", err, out)
	}
	ns, other, name := testkit.Namespace(t), testkit.Namespace(t), testkit.Unique(t)
	conf := replaceOnce(t, elsewhere(fill(widgetConfig, ns, name), other, ns), "name: {{ .metadata.name }}", "name: {{ .spec.name }}")
	conf += "guard: {maxDeleted: 100%}\n" // what is edited while it is dead counts at a start
	p := newProgram(t, binary, conf)
	story := follow(t, ns)
	end := churn(t, rand.New(rand.NewPCG(1, 2)), ns, other) // the same story each time; the moments of the kills differ anyway
	p.killAgainAndAgain(12)
	end()
	p.run()
	testkit.Eventually(t, 2*patience, func() (bool, string) { return allInPlace(t, story, ns, other, name) })
}

// story is what watches have shown of Widgets and of what is their own, by the uid of the Widget.
type story struct {
	mu     sync.Mutex
	unheld map[string]bool     // the API server did not wait for the finalizer
	events map[string][]string // all that was seen, for whoever looks into a failure
}

// follow watches what happens in a namespace until the test ends.
func follow(t *testing.T, ns string) *story {
	t.Helper()
	s := &story{unheld: map[string]bool{}, events: map[string][]string{}}
	ctx, cancel := context.WithCancel(context.Background())
	var following sync.WaitGroup
	t.Cleanup(func() { cancel(); following.Wait() })
	for _, gvr := range []schema.GroupVersionResource{widgets, configMaps} {
		events := watching(ctx, t, testkit.Dynamic(t).Resource(gvr).Namespace(ns))
		following.Go(func() {
			for e := range events.ResultChan() {
				if u, ok := e.Object.(*unstructured.Unstructured); ok {
					s.tell(e.Type, u)
				}
			}
		})
	}
	return s
}

func watching(ctx context.Context, t *testing.T, client dynamic.ResourceInterface) watch.Interface {
	t.Helper()
	list, err := client.List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// The API server ends a watch that does not keep up, as on a busy machine; it is taken up again where it ended.
	watcher := &cache.ListWatch{WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
		return client.Watch(ctx, o)
	}}
	events, err := watchtools.NewRetryWatcherWithContext(ctx, list.GetResourceVersion(), watcher)
	if err != nil {
		t.Fatal(err)
	}
	return events
}

// tell keeps what was seen of a Widget or of what is its own.
func (s *story) tell(kind watch.EventType, u *unstructured.Unstructured) {
	s.mu.Lock()
	defer s.mu.Unlock()
	uids := []string{string(u.GetUID())}
	for _, owner := range u.GetOwnerReferences() {
		uids = append(uids, string(owner.UID))
	}
	for _, uid := range uids {
		s.events[uid] = append(s.events[uid], fmt.Sprintf("%s %s %s %s: finalizers %v, deleting %t", u.GetResourceVersion(), kind,
			u.GetKind(), u.GetName(), u.GetFinalizers(), u.GetDeletionTimestamp() != nil))
	}
	// A deletion that the API server has begun goes through although a finalizer is added meanwhile: it looks for finalizers
	// once, and then asks the storage for the uid alone. Nobody can hold such an object; the garbage collector cleans up.
	if u.GetKind() == "Widget" && kind == watch.Deleted && u.GetDeletionTimestamp() == nil && len(u.GetFinalizers()) > 0 {
		s.unheld[uids[0]] = true
	}
}

// program is the real binary with a config.
type program struct {
	t           *testing.T
	binary, dir string
}

func newProgram(t *testing.T, binary, conf string) *program {
	t.Helper()
	p := &program{t: t, binary: binary, dir: t.TempDir()}
	if err := os.WriteFile(filepath.Join(p.dir, "operator.yaml"), []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	return p
}

// run starts it. It runs until the test ends or kill is called; a failed test shows what it logged.
func (p *program) run() (log *output, kill func()) {
	p.t.Helper()
	log = &output{}
	cmd := exec.Command(p.binary, "run", "--config", p.dir, "--kubeconfig", testkit.Kubeconfig(p.t), "--metrics-bind-address", "0",
		"--health-probe-bind-address", "0", "--zap-log-level", "debug")
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	kill = sync.OnceFunc(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	p.t.Cleanup(func() {
		if kill(); p.t.Failed() {
			p.t.Log(log.String())
		}
	})
	return log, kill
}

// killAgainAndAgain starts it and kills it at some moment after its first action, as many times.
func (p *program) killAgainAndAgain(times int) {
	p.t.Helper()
	for range times {
		log, kill := p.run()
		testkit.Eventually(p.t, patience, func() (bool, string) {
			return strings.Contains(log.String(), "acting"), "it does nothing:\n" + log.String()
		})
		<-time.After(rand.N(800 * time.Millisecond))
		kill()
	}
}

// output is what a program has written so far.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// churn creates, changes, renames, moves and deletes Widgets until the function that it returns is called, or the test ends.
func churn(t *testing.T, random *rand.Rand, ns, other string) (end func()) {
	where, i := []string{ns, other}, 0
	end = again(10*time.Millisecond, func() {
		i++
		name := fmt.Sprintf("w-%d", random.IntN(25))
		if random.IntN(6) == 0 {
			testkit.Delete(t, widgets, ns, name)
			return
		}
		spec := fmt.Sprintf(`{name: %s-%d, namespace: %s, data: {key: "%d"}}`, name, random.IntN(2), where[random.IntN(2)], i)
		_, _ = testkit.TryApply(t, ns, widget(name, spec)) // it may be being deleted
	})
	t.Cleanup(end)
	return end
}

// allInPlace tells whether every Widget has exactly its own ConfigMap, and every ConfigMap its Widget.
func allInPlace(t *testing.T, s *story, ns, other, name string) (bool, string) {
	made := map[string]unstructured.Unstructured{}
	for _, namespace := range []string{ns, other} {
		for _, cm := range testkit.List(t, configMaps, namespace, selector(name)) {
			mark := cm.GetAnnotations()[name+".example.com/owner"]
			if uid := mark[strings.LastIndex(mark, "/")+1:]; s.wasUnheld(uid) && len(cm.GetOwnerReferences()) == 0 {
				t.Logf("cleaning up by hand after Widget %s, whose deletion the API server did not hold", uid)
				testkit.Delete(t, configMaps, namespace, cm.GetName())
				return false, cm.GetName() + " is being deleted"
			}
			made[namespace+"/"+cm.GetName()] = cm
		}
	}
	list := testkit.List(t, widgets, ns, "")
	if len(list) == 0 {
		return false, "nothing is left to look at"
	}
	for _, w := range list {
		spec, _, _ := unstructured.NestedMap(w.Object, "spec")
		key := fmt.Sprintf("%s/%s", spec["namespace"], spec["name"])
		cm, ok := made[key]
		if !ok {
			return false, fmt.Sprintf("%s has no ConfigMap %s: %v", w.GetName(), key, w.Object)
		}
		want, _, _ := unstructured.NestedString(w.Object, "spec", "data", "key")
		if have, _, _ := unstructured.NestedString(cm.Object, "data", "key"); have != want {
			return false, fmt.Sprintf("%s has %s, not %s: %v; %v", key, have, want, cm.Object["metadata"], w.Object)
		}
		if status, reason, message := condition(&w, "Ready"); status != "True" || w.GetDeletionTimestamp() != nil {
			return false, fmt.Sprintf("%s: Ready is %s, %s: %s", w.GetName(), status, reason, message)
		}
		if ids := downstreamsOf(&w)["config"]; ids["uid"] != string(cm.GetUID()) {
			return false, fmt.Sprintf("%s names %v, not %s", w.GetName(), ids, cm.GetUID())
		}
		delete(made, key)
	}
	for key, cm := range made {
		return false, fmt.Sprintf("nobody wants %s: %v\n%s", key, cm.Object["metadata"], s.all())
	}
	return true, ""
}

// While everything changes the config changes too, again and again, its views and so its watches included. Nothing is
// lost, nothing doubled, nothing orphaned.
func TestReloadWhileAllChanges(t *testing.T) {
	t.Parallel()
	ns, other, name := testkit.Namespace(t), testkit.Namespace(t), testkit.Unique(t)
	conf := replaceOnce(t, elsewhere(fill(widgetConfig, ns, name), other, ns), "name: {{ .metadata.name }}", "name: {{ .spec.name }}")
	r := start(t, testkit.Config(t), conf).ready()
	story := follow(t, ns)

	end := churn(t, rand.New(rand.NewPCG(3, 4)), ns, other)
	for i := range 12 {
		next := replaceOnce(t, conf, "conventions:\n", fmt.Sprintf("conventions:\n  annotations: {version: \"%d\"}\n", i))
		if i%3 == 1 {
			next = replaceOnce(t, next, "    targetNamespaces:", "    drift: {exclusiveFields: [.data]}\n    targetNamespaces:")
		}
		r.reloadTo(next)
		if i%2 == 0 { // the others are overtaken by the next
			testkit.Eventually(t, patience, func() (bool, string) {
				n := metric(t, "corollary_config_reloads_total", name, "result", "Applied")
				return n > float64(i/2), fmt.Sprintf("%v changes are at work after %d", n, i+1)
			})
		}
	}
	end()
	testkit.Eventually(t, 2*patience, func() (bool, string) {
		for _, cm := range append(testkit.List(t, configMaps, ns, selector(name)), testkit.List(t, configMaps, other, selector(name))...) {
			if version := cm.GetAnnotations()["version"]; version != "11" {
				return false, cm.GetName() + " is of version " + version
			}
		}
		return allInPlace(t, story, ns, other, name)
	})
	r.ready()
}

// wasUnheld reports whether the Widget of that uid went although a finalizer had been added to it.
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
