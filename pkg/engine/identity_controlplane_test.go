//go:build controlplane

package engine_test

import (
	"strings"
	"testing"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// Two teams' configs in one process, which may do nothing itself: each works by the rights of its own ServiceAccount, and
// one that names the other team's namespace gets nothing there, though a watch of just that is open in the process.
func TestEachActsByItsOwnRights(t *testing.T) {
	t.Parallel()
	a, b, alice, bob := testkit.Namespace(t), testkit.Namespace(t), testkit.Unique(t), testkit.Unique(t)
	grant(t, a, a, alice, everythingOfIt)
	grant(t, b, b, bob, everythingOfIt)
	ofA, ofB, thief, reacher := testkit.Unique(t), testkit.Unique(t), testkit.Unique(t), testkit.Unique(t)
	r := start(t, actor(t, alice, bob), acting(lettered(fill(widgetConfig, a, ofA), "A"), a, alice), acting(lettered(fill(widgetConfig, b, ofB), "B"), b, bob)).ready()
	for letter, ns := range map[string]string{"A": a, "B": b} {
		testkit.Apply(t, ns, widget("web", `{data: {key: value}}`))
		waitCondition(t, widgets, ns, "web", "Ready"+letter, "True")
		isRepaired(t, ns, "web", "key", "value")
	}

	thieves := lettered(fill(widgetConfig, b, thief), "C")
	r.write("c.yaml", acting(thieves, a, alice))
	r.reload()
	r.cannotRun(thief, "Forbidden", "watching widgets.test.example.com in namespace "+b, "grant ServiceAccount "+a+"/"+alice)

	r.write("c.yaml", acting(elsewhere(lettered(fill(widgetConfig, a, reacher), "C"), b, a), a, alice))
	r.reload()
	r.cannotRun(reacher, "Forbidden", "watching configmaps in namespace "+b, "grant ServiceAccount "+a+"/"+alice)

	r.write("c.yaml", thieves) // nor does the process have any rights
	r.reload()
	r.cannotRun(thief, "Forbidden", "widgets.test.example.com in namespace "+b)
	if message := r.problems(); strings.Contains(message, "ServiceAccount") || !strings.Contains(message, `User "process-`) {
		t.Error(message)
	}
	waitState(t, ofA, "Running")
	waitState(t, ofB, "Running")
}

// A changed identity is a changed config: it takes over once its own watches are in, and till then the one before goes on.
func TestReloadChangesTheIdentity(t *testing.T) {
	t.Parallel()
	ns, alice, bob, name := testkit.Namespace(t), testkit.Unique(t), testkit.Unique(t), testkit.Unique(t)
	grant(t, ns, ns, alice, everythingOfIt)
	counter := testkit.NewCounter()
	r := start(t, counter.Wrap(actor(t, alice, bob)), acting(fill(widgetConfig, ns, name), ns, alice)).ready()
	applyReady(t, ns, "a", `{data: {key: value}}`)
	quiet(t, counter)

	counter.Reset()
	r.reloadTo(acting(fill(widgetConfig, ns, name), ns, bob))
	r.waitSays("ReloadFailed: Forbidden", "grant ServiceAccount "+ns+"/"+bob)
	testkit.Apply(t, ns, widget("b", `{data: {key: value}}`)) // the one before is at work
	waitCondition(t, widgets, ns, "b", "Ready", "True")

	grant(t, ns, ns, bob, everythingOfIt)
	testkit.Eventually(t, patience, func() (bool, string) { err := r.Reloaded(nil); return err == nil, text(err) })
	waitState(t, name, "Running")
	testkit.Delete(t, roleBindings, ns, alice) // its rights are needed no more
	quiet(t, counter)
	if n := counter.Snapshot()["PATCH configmaps"]; n > 1 { // that of b
		t.Errorf("the change cost %d writes: %v", n-1, counter.Snapshot())
	}
	isRepaired(t, ns, "a", "key", "value")
}

// Which of two rights is missing is told apart: that of the ServiceAccount, and that of the process to act as it.
func TestMayNotImpersonate(t *testing.T) {
	t.Parallel()
	ns, alice, name := testkit.Namespace(t), testkit.Unique(t), testkit.Unique(t)
	grant(t, ns, ns, alice, `[{apiGroups: [test.example.com], resources: [widgets], verbs: [list, watch]},
	  {apiGroups: [test.example.com], resources: [widgets/status], verbs: [patch]}, {apiGroups: [""], resources: [configmaps], verbs: [get, list, watch]}]`)
	cfg := testkit.User(t, name)
	config := acting(fill(widgetConfig, ns, name), ns, alice)
	r := start(t, cfg, config)
	r.cannotRun(name, "Forbidden", "acting as ServiceAccount "+ns+"/"+alice+" is forbidden", "grant this process impersonate on serviceaccounts "+alice+" in namespace "+ns)
	r.halt()

	may := actor(t, alice)
	start(t, may, config).ready()
	testkit.Apply(t, ns, widget("a", `{data: {key: value}}`))
	waitsFor(t, widgets, ns, "a", "Forbidden", "system:serviceaccount:"+ns+":"+alice, "patch configmaps in namespace "+ns)
}
