//go:build controlplane

package engine_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// The real binary is killed again and again while it is at work.
func TestKilledAtAnyMoment(t *testing.T) {
	t.Parallel()
	binary := filepath.Join(t.TempDir(), "corollary")
	if out, err := exec.Command("go", "build", "-buildvcs=false", "-o", binary, "../../cmd/corollary").CombinedOutput(); err != nil {
		t.Fatalf("building: %v\n%s", err, out)
	}
	t.Run("at changes", func(t *testing.T) { t.Parallel(); killedAtChanges(t, binary) })
	t.Run("at deletions with deletion.before", func(t *testing.T) { t.Parallel(); killedAtBefore(t, binary) })
}

// killedAtChanges kills it in the middle of creations, changes, renames, moves between namespaces and deletions. When it
// is left alone at last, nothing is lost, nothing doubled, nothing orphaned.
func killedAtChanges(t *testing.T, binary string) {
	t.Helper()
	ns, other, name := testkit.Namespace(t), testkit.Namespace(t), testkit.Unique(t)
	conf := elsewhere(fill(widgetConfig, ns, name), other, ns)
	conf = replaceOnce(t, conf, "name: {{ .metadata.name }}", "name: {{ .spec.name }}")
	conf += "guard: {maxDeleted: 100%}\n" // what is edited while it is dead counts at a start
	p := newProgram(t, binary, conf)
	story := follow(t, ns)

	random := rand.New(rand.NewPCG(1, 2)) // the same story each time; the moments of the kills differ anyway
	stop := make(chan struct{})
	var churning sync.WaitGroup
	churning.Go(func() { churn(t, random, ns, other, stop) })
	end := sync.OnceFunc(func() { close(stop); churning.Wait() })
	t.Cleanup(end)
	p.killAgainAndAgain(12)
	end()
	p.run()
	testkit.Eventually(t, 2*patience, func() (bool, string) { return allInPlace(t, story, ns, other, name) })
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

// churn creates, changes, renames, moves and deletes Widgets until it is stopped.
func churn(t *testing.T, random *rand.Rand, ns, other string, stop chan struct{}) {
	where := []string{ns, other}
	for i := 0; ; i++ {
		select {
		case <-stop:
			return
		case <-time.After(10 * time.Millisecond):
		}
		name := fmt.Sprintf("w-%d", random.IntN(25))
		if random.IntN(6) == 0 {
			testkit.Delete(t, widgets, ns, name)
			continue
		}
		spec := fmt.Sprintf(`{name: %s-%d, namespace: %s, data: {key: "%d"}}`, name, random.IntN(2), where[random.IntN(2)], i)
		if _, err := testkit.TryApply(t, ns, widget(name, spec)); err != nil {
			continue // it is being deleted
		}
	}
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
	conf := elsewhere(fill(widgetConfig, ns, name), other, ns)
	conf = replaceOnce(t, conf, "name: {{ .metadata.name }}", "name: {{ .spec.name }}")
	r := start(t, testkit.Config(t), conf).ready()
	story := follow(t, ns)

	stop := make(chan struct{})
	var churning sync.WaitGroup
	churning.Go(func() { churn(t, rand.New(rand.NewPCG(3, 4)), ns, other, stop) })
	end := sync.OnceFunc(func() { close(stop); churning.Wait() })
	t.Cleanup(end)
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
