//go:build controlplane

package cli_test

import (
	"context"
	"fmt"
	"net/http"
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
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// resting is how many Widgets nobody touches, and how many ConfigMaps the rival writes over, each once.
const resting = 60

// traffic makes Widgets, changes some, and writes over ConfigMaps of others. It remembers when each of that was, when
// it was acted on, and how often each ConfigMap was written.
type traffic struct {
	ns     string
	cancel context.CancelFunc
	work   sync.WaitGroup

	mu sync.Mutex
	// waiting is what has not been acted on yet, by ConfigMap: since when, by the number of the change.
	waiting map[string]map[int]time.Time
	// asked is how many changes there were of a ConfigMap's content, written how many versions of it were stored.
	asked, written map[string]int
	acted          int
	longest        time.Duration
	slowest        string
}

func startTraffic(t *testing.T, ns string) *traffic {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	w := &traffic{ns: ns, cancel: cancel, waiting: map[string]map[int]time.Time{}, asked: map[string]int{}, written: map[string]int{}}
	follow(t, configMaps, ns, w.saw)
	w.work.Go(func() {
		if err := w.run(ctx.Done(), t); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(w.stop)
	return w
}

// follow calls saw with every version that objects of a namespace have from now on, until the test ends.
func follow(t *testing.T, gvr schema.GroupVersionResource, ns string, saw func(*unstructured.Unstructured)) {
	t.Helper()
	client := testkit.Dynamic(t).Resource(gvr).Namespace(ns)
	list := must(client.List(t.Context(), metav1.ListOptions{}))(t)
	// The API server ends the watch of whoever is slow to read; this one goes on where the last has ended.
	changes := must(watchtools.NewRetryWatcherWithContext(t.Context(), list.GetResourceVersion(), &cache.ListWatch{
		WatchFuncWithContext: client.Watch,
	}))(t)
	go func() {
		for event := range changes.ResultChan() {
			if u, ok := event.Object.(*unstructured.Unstructured); ok {
				saw(u)
			}
		}
	}()
}

// holders are who has held the Lease, in order; "" where it was given back.
type holders struct {
	mu   sync.Mutex
	list []string
}

func followHolders(t *testing.T, ns string) *holders {
	t.Helper()
	h := &holders{}
	follow(t, leases, ns, func(lease *unstructured.Unstructured) {
		name, _, _ := unstructured.NestedString(lease.Object, "spec", "holderIdentity")
		h.mu.Lock()
		defer h.mu.Unlock()
		if len(h.list) == 0 || h.list[len(h.list)-1] != name {
			h.list = append(h.list, name)
		}
	})
	return h
}

// check fails unless whoever took the Lease was handed it, until the last one has it: one that had run out went from
// holder to holder.
func (h *holders) check(t *testing.T, last string) {
	t.Helper()
	testkit.Eventually(t, patience, func() (bool, string) {
		h.mu.Lock()
		defer h.mu.Unlock()
		return len(h.list) > 0 && h.list[len(h.list)-1] == last, fmt.Sprintf("the Lease was seen with %q, and %s has it", h.list, last)
	})
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range len(h.list) - 1 {
		if h.list[i] != "" && h.list[i+1] != "" {
			t.Errorf("%s did not give the Lease back before %s took it", h.list[i], h.list[i+1])
		}
	}
	if len(h.list) < 3 {
		t.Errorf("the Lease was not handed over: %q", h.list)
	}
}

func (w *traffic) stop() {
	w.cancel()
	w.work.Wait()
}

// run does one thing after the other until stopped, and breaks none off. The color of a Widget is the number of its
// change.
func (w *traffic) run(stopped <-chan struct{}, t *testing.T) error {
	upstreams := testkit.Dynamic(t).Resource(widgets).Namespace(w.ns)
	for i := 1; ; i++ {
		moment := time.After(20 * time.Millisecond)
		select {
		case <-stopped:
			return nil
		case <-moment:
		}
		name := fmt.Sprintf("made-%d", i)
		switch {
		case i%6 == 0 && i/6 <= resting:
			if err := w.harm(t, fmt.Sprintf("harmed-%d", i/6-1)); err != nil {
				return err
			}
			continue
		case i%2 == 0:
			name = fmt.Sprintf("changed-%d", i/2%10)
		}
		w.ask(name, i)
		if err := applyWidget(t.Context(), upstreams, name, strconv.Itoa(i)); err != nil {
			return err
		}
	}
}

// harm writes over a ConfigMap, which is to get back its color.
func (w *traffic) harm(t *testing.T, name string) error {
	w.ask(name, 0)
	_, err := testkit.Dynamic(t).Resource(configMaps).Namespace(w.ns).Patch(t.Context(), name, types.MergePatchType,
		[]byte(`{"data": {"color": "harmed"}}`), metav1.PatchOptions{FieldManager: "rival"})
	return err
}

func (w *traffic) ask(name string, change int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.waiting[name] == nil {
		w.waiting[name] = map[int]time.Time{}
	}
	w.waiting[name][change] = time.Now()
	w.asked[name]++
}

// saw takes in a version of a ConfigMap. It answers the change that it is of and those before.
func (w *traffic) saw(cm *unstructured.Unstructured) {
	color, _, _ := unstructured.NestedString(cm.Object, "data", "color")
	if color == "harmed" {
		return
	}
	number, _ := strconv.Atoi(color) // gray is 0
	w.mu.Lock()
	defer w.mu.Unlock()
	name := cm.GetName()
	w.written[name]++
	for change, since := range w.waiting[name] {
		if change > number {
			continue
		}
		delete(w.waiting[name], change)
		w.acted++
		if took := time.Since(since); took > w.longest {
			w.longest, w.slowest = took, fmt.Sprintf("change %d of %s", change, name)
		}
	}
}

// goesOn waits until some more has been acted on.
func (w *traffic) goesOn(t *testing.T) {
	t.Helper()
	acted := func() int {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.acted
	}
	before := acted()
	testkit.Eventually(t, patience, func() (bool, string) { return acted() >= before+20, "nothing is acted on any more" })
}

// check fails unless all was acted on soon, and that nothing was written more often than it was changed.
func (w *traffic) check(t *testing.T) {
	t.Helper()
	testkit.Eventually(t, patience, func() (bool, string) { // what the API server has, the watch may not have shown yet
		w.mu.Lock()
		defer w.mu.Unlock()
		for name, changes := range w.waiting {
			if len(changes) > 0 {
				return false, fmt.Sprintf("%d changes of %s were not acted on", len(changes), name)
			}
		}
		return true, ""
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	for name, n := range w.written {
		if n > w.asked[name] || n < w.asked[name] && !strings.HasPrefix(name, "changed") { // two changes may be one write
			t.Errorf("%s was changed %d times and written %d times", name, w.asked[name], n)
		}
	}
	t.Logf("%d changes were acted on, that which waited longest (%s) after %s", w.acted, w.slowest, w.longest.Round(time.Millisecond))
	// Far more than a busy machine needs, and far less than what waits for the next event or is looked at from time to
	// time.
	if bound := testkit.Patient(patience / 2); w.longest > bound {
		t.Errorf("%s waited for %s, more than %s", w.slowest, w.longest, bound)
	}
}

// previousVersion is the last commit before writes were held to the Lease. Its leader election is client-go's alone.
const previousVersion = "b92b9128f1c42fbbac90f5f9e88f3c498978f599"

// buildPrevious builds the binary of the previous version and returns its path.
func buildPrevious(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	source, binary := filepath.Join(dir, "source"), filepath.Join(dir, "corollary")
	shell := func(command string) error {
		out, err := exec.CommandContext(t.Context(), "sh", "-c", command).CombinedOutput()
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	}
	if err := shell("mkdir " + source + " && cd ../.. && git archive -o " + source + ".tar " + previousVersion + " && tar -xf " + source +
		".tar -C " + source); err != nil {
		t.Logf("the checkout does not have the previous version, so that this is an upgrade from the present one: %v", err)
		source = "../.."
	}
	if err := shell("cd " + source +
		" && GOWORK=off GOFLAGS=-mod=readonly go build -buildvcs=false -ldflags '-s -w -X " +
		"github.com/corollary-dev/corollary/pkg/cli.Version=previous' -o " + binary + " ./cmd/corollary"); err != nil {
		t.Fatal(err)
	}
	return binary
}

// startReplica starts one replica of a Deployment and waits until it is ready, as a Deployment does.
func startReplica(t *testing.T, binary, ns, name string, election ...string) *member {
	t.Helper()
	user, health := name+"-of-"+ns, testkit.FreeAddress(t)
	m := &member{user: user, process: startBinary(t, binary, testkit.Config(t), false,
		append([]string{"run", "-c", operatorFile, "--set", "widgets:.watch.namespaces=[" + ns + "]",
			"--metrics-bind-address", "0", "--health-probe-bind-address", health, "--as", user, "--as-group", "system:masters",
			"-n", ns, "--leader-elect", "--leader-election-id", "widgets-leader"}, election...)...)}
	eventuallyAnswers(t, health+"/readyz", http.StatusOK)
	return m
}

// TestRollingUpgrade from the previous version, while upstreams are made and changed and a rival writes over
// downstreams: nothing is lost, nothing is done twice, what rests is left alone, and nothing waits for longer than a
// moment.
func TestRollingUpgrade(t *testing.T) {
	t.Parallel()
	self := must(os.Executable())(t)
	binary, ns := buildPrevious(t), testkit.Namespace(t)
	old := []*member{startReplica(t, binary, ns, "old-1")}
	eventuallyLeads(t, old[0])
	old = append(old, startReplica(t, binary, ns, "old-2"))
	for i := range resting {
		for _, name := range []string{"resting", "harmed"} {
			testkit.Apply(t, ns, fmt.Sprintf("{apiVersion: tools.example.com/v1, kind: Widget, metadata: {name: %s-%d}, spec: {color: gray}}", name,
				i))
		}
	}
	eventuallySettled(t, ns)
	begin := time.Now()
	traffic, holders := startTraffic(t, ns), followHolders(t, ns)
	traffic.goesOn(t)
	var fresh []*member
	for i, m := range old { // as a Deployment does it: one more than wanted at a time, one by one
		fresh = append(fresh, startReplica(t, self, ns, fmt.Sprintf("new-%d", i+1), steadyElection...))
		traffic.goesOn(t)
		m.signal(t, syscall.SIGTERM)
		if code := m.wait(t); code != 0 {
			t.Errorf("%s: exit code %d", m.user, code)
		}
		traffic.goesOn(t)
	}
	traffic.stop()
	allMatch(t, ns)
	eventuallySettled(t, ns)
	traffic.check(t)
	holders.check(t, holderOf(t, ns))
	oneByOne(t, append(old, fresh...), begin)
}

// oneByOne checks that no two of the members wrote in the same time, that none wrote what rests, and that each
// ConfigMap was created once.
func oneByOne(t *testing.T, members []*member, begin time.Time) {
	t.Helper()
	var ended time.Time
	var who string
	created := map[string]int{}
	for _, m := range members {
		written := slices.DeleteFunc(m.wrote(t, begin), func(r testkit.Request) bool { return r.Resource == "events" })
		t.Logf("%s made %d writes", m.user, len(written))
		for _, r := range written {
			if strings.HasPrefix(r.Name, "resting") {
				t.Errorf("%s wrote what rests: %+v", m.user, r)
			}
			if r.Resource == "configmaps" && r.Code == http.StatusCreated {
				created[r.Name]++
			}
		}
		if len(written) == 0 {
			continue
		}
		slices.SortFunc(written, func(a, b testkit.Request) int { return a.Received.Compare(b.Received) })
		if first := written[0].Received; first.Before(ended) {
			t.Errorf("%s wrote %s before %s wrote for the last time", m.user, ended.Sub(first), who)
		}
		ended, who = written[len(written)-1].Received, m.user
	}
	for name, n := range created {
		if n != 1 {
			t.Errorf("%s was created %d times", name, n)
		}
	}
}

// eventuallySettled waits until the status of every Widget says that it is ready as it is now.
func eventuallySettled(t *testing.T, ns string) {
	t.Helper()
	testkit.Eventually(t, patience, func() (bool, string) {
		for _, w := range testkit.List(t, widgets, ns, "") {
			conditions, _, _ := unstructured.NestedSlice(w.Object, "status", "conditions")
			if len(conditions) == 0 {
				return false, w.GetName() + " has no conditions"
			}
			if c := conditions[0].(map[string]any); c["observedGeneration"] != w.GetGeneration() || c["status"] != "True" {
				return false, fmt.Sprintf("%s: %v", w.GetName(), c)
			}
		}
		return true, ""
	})
}
