package engine_test

import (
	"testing"

	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/engine"
)

// electionTest is a leader, and a standby whose watch of Widgets is held back from some moment on.
type electionTest struct {
	ns      string
	leader  *running
	counter *testkit.Counter // of the standby's requests
	release func()
	elect   func()
}

func startElectionTest(t *testing.T, objects ...string) *electionTest {
	t.Helper()
	s := &electionTest{ns: testkit.Namespace(t), counter: testkit.NewCounter()}
	conf := watched(fill(widgetConfig, s.ns, testkit.Unique(t)), "labelSelector: {matchExpressions: [{key: unserved, operator: DoesNotExist}]}")
	s.leader = start(t, testkit.Config(t), conf).ready()
	for _, object := range objects {
		testkit.Apply(t, s.ns, widget(object, "{data: {key: old}}"))
		waitCondition(t, widgets, s.ns, object, "Ready", "True")
	}
	watches, elected := &held{resource: "widgets"}, make(chan struct{})
	startWith(t, watches.wrap(s.counter.Wrap(testkit.Config(t))), func(_ *config.Operator, o *engine.Options) {
		o.Elected, o.HadOtherLeader = elected, func() bool { return true }
	}, conf).ready()
	s.release = watches.hold()
	s.elect = func() {
		s.leader.halt()
		s.counter.Reset()
		close(elected)
	}
	return s
}

// TestElectedWithALaggingWatch: whoever takes over while its watch of the upstreams is behind does not go back to an older
// desired. Where nothing is to be done, or an upstream came later, nothing is read.
func TestElectedWithALaggingWatch(t *testing.T) {
	inMemory(t, func(t *testing.T) {
		s := startElectionTest(t, "changed", "same")
		testkit.Patch(t, widgets, s.ns, "changed", "somebody", `{"spec":{"data":{"key":"new"}}}`)
		waitData(t, s.ns, "changed", "key", "new")
		waitCondition(t, widgets, s.ns, "changed", "Ready", "True")
		s.elect()
		testkit.Eventually(t, patience, func() (bool, string) { return s.counter.Total() > 1, "it reads nothing" })
		quiet(t, s.counter)
		if n := s.counter.Total(); n != 2 || s.counter.Mutating() > 0 {
			t.Errorf("%d requests: %v; wanted are one about all upstreams and one about that which differs", n, s.counter.Snapshot())
		}
		s.release()
		s.counter.Reset()
		testkit.Apply(t, s.ns, widget("later", "{data: {key: new}}"))
		waitCondition(t, widgets, s.ns, "later", "Ready", "True")
		quiet(t, s.counter)
		if n := s.counter.Total(); n != 2 {
			t.Errorf("a new upstream takes %d requests: %v", n, s.counter.Snapshot())
		}
		waitData(t, s.ns, "changed", "key", "new")
	})
}

// TestElectedWhenAnUpstreamIsGone: nothing is made for an upstream that is gone, though the watch shows it.
func TestElectedWhenAnUpstreamIsGone(t *testing.T) {
	inMemory(t, func(t *testing.T) {
		s := startElectionTest(t, "gone")
		testkit.Delete(t, widgets, s.ns, "gone")
		waitGone(t, configMaps, s.ns, "gone")
		s.elect()
		testkit.Eventually(t, patience, func() (bool, string) { return s.counter.Total() > 1, "it reads nothing" })
		s.release()
		testkit.Apply(t, s.ns, widget("later", "{data: {key: new}}"))
		waitCondition(t, widgets, s.ns, "later", "Ready", "True")
		about := func(r testkit.Request) bool { return r.Name == "gone" }
		if s.counter.Mutating(about) > 0 {
			t.Errorf("it wrote: %v", s.counter.Snapshot())
		}
	})
}

// TestElectedWhenAnUpstreamIsNotSelected: what lost its label, with nobody there to see it, is cleaned up after all the same.
func TestElectedWhenAnUpstreamIsNotSelected(t *testing.T) {
	inMemory(t, func(t *testing.T) {
		s := startElectionTest(t, "lost", "kept")
		s.leader.halt()
		s.release()
		testkit.Patch(t, widgets, s.ns, "lost", "somebody", `{"metadata":{"labels":{"unserved":"yes"}}}`)
		s.elect()
		waitGone(t, configMaps, s.ns, "lost")
		waitData(t, s.ns, "kept", "key", "old")
	})
}
