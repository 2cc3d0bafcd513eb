package engine_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// roomDownstream, claimDownstream and noteDownstream are a Namespace of a Team, a ConfigMap in it that is kept, and
// another one.
const (
	roomDownstream = `
  - name: room
    apiVersion: v1
    kind: Namespace
    template: |
      metadata: {name: "room-{{ .metadata.name }}"}
`
	claimDownstream = `
  - name: claim
    apiVersion: v1
    kind: ConfigMap
    targetNamespaces: {from: Any}
    deletionPolicy: Orphan
    template: |
      metadata: {name: claim, namespace: "room-{{ .metadata.name }}"}
`
	noteDownstream = `
  - name: note
    apiVersion: v1
    kind: Secret
    targetNamespaces: {from: Any}
    template: |
      metadata: {name: note, namespace: default}
`
)

// What contains an object that stays is kept, also where the config has forgotten one of the two, or both.
func TestForgottenHolderIsKept(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, reason, changed string
		refused               bool
	}{
		{name: "the Namespace is forgotten", reason: "the garbage collector deletes what has an owner reference", changed: claimDownstream},
		{name: "what is in it is forgotten", reason: "what is left over stays after its upstream", changed: roomDownstream},
		{name: "both are forgotten", reason: "nothing but the finalizer leaves time to keep the Namespace", changed: noteDownstream},
		{name: "it may not be released", reason: "the upstream waits", changed: claimDownstream, refused: true},
	} {
		t.Run(row.name, bubbled(func(t *testing.T) {
			head, tail := around(t, teamConfig(t))
			faults, fault := testkit.NewFaults(), (*testkit.Fault)(nil)
			r := start(t, faults.Wrap(testkit.Config(t)), head+roomDownstream+claimDownstream+noteDownstream+tail).ready()
			testkit.Apply(t, "", object("Team", "a", "{}"))
			waitCondition(t, teams, "", "a", "Ready", "True")
			r.reloadTo(head + row.changed + tail)
			waitLeftover(t)
			if row.refused {
				fault = faults.Answer(403, func(q *http.Request) bool {
					return q.Method == http.MethodPatch && strings.Contains(q.URL.Path, "/namespaces/room-a")
				})
			}
			testkit.Delete(t, teams, "", "a")
			if row.refused {
				waitsFor(t, teams, "", "a", "", "Namespace of downstream room, which the config no longer has, cannot be released "+
					"(it is kept, since ConfigMap room-a/claim, which deletionPolicy Orphan keeps, is in it)")
				fault.Off()
			}
			waitGone(t, teams, "", "a")
			never(t, func() (bool, string) {
				return testkit.Find(t, configMaps, "room-a", "claim") == nil, row.reason + ": the ConfigMap was deleted"
			})
			if u := testkit.Get(t, namespaces, "", "room-a"); u.GetDeletionTimestamp() != nil || len(u.GetOwnerReferences()) > 0 {
				t.Errorf("%s: the Namespace still goes: %v", row.reason, u.Object["metadata"])
			}
		}))
	}
}

// A custom resource that a Namespace waits for is deleted, also where it has an owner reference and nothing else has to
// be waited for: the garbage collector would begin after the upstream.
func TestContentsOfHolderAreNotLeftToTheCollector(t *testing.T) {
	inMemory(t, func(t *testing.T) {
		head, tail := around(t, teamConfig(t))
		custom := replaceOnce(t, replaceOnce(t, claimDownstream, "apiVersion: v1\n    kind: ConfigMap", "apiVersion: test.example.com/v1\n    kind: Widget"),
			"deletionPolicy: Orphan", "after: [{name: room, until: Created}]\n    ready: {observedGeneration: Optional}")
		start(t, testkit.Config(t), head+roomDownstream+custom+replaceOnce(t, noteDownstream, "    template", "    deletionPolicy: Orphan\n    template")+tail).ready()
		testkit.Apply(t, "", object("Team", "a", "{}"))
		waitCondition(t, teams, "", "a", "Ready", "True")
		testkit.Delete(t, teams, "", "a")
		waitGone(t, teams, "", "a")
		waitGone(t, namespaces, "", "room-a")
		mustExist(t, secretKind, "default", "note", "deletionPolicy is Orphan")
	})
}

// teamConfig is widgetConfig for Teams, which are cluster-scoped.
func teamConfig(t *testing.T) string {
	t.Helper()
	return replaceOnce(t, fill(widgetConfig, "", testkit.Unique(t)), "kind: Widget, namespaces: []}", "kind: Team}")
}

// waitLeftover waits until the status of Team a has an object that the config has forgotten.
func waitLeftover(t *testing.T) {
	t.Helper()
	waitThat(t, teams, "", "a", func(u *obj) bool { return strings.Contains(fmt.Sprint(u.Object["status"]), "Leftover") })
}

// around is a config up to its downstreams, and after them.
func around(t *testing.T, conf string) (head, tail string) {
	t.Helper()
	head, _, ok := strings.Cut(conf, "\n  - name: config")
	_, tail, found := strings.Cut(conf, "\nconventions:")
	if !ok || !found {
		t.Fatalf("the config has another form:\n%s", conf)
	}
	return head, "conventions:" + tail
}

// What the config has forgotten keeps its Namespace also where that is renamed; if it cannot be read, the Namespace
// waits.
func TestRenamedHolderIsKept(t *testing.T) {
	inMemory(t, func(t *testing.T) {
		head, tail := around(t, teamConfig(t))
		r, faults := startFaulty(t, head+roomDownstream+claimDownstream+noteDownstream+tail)
		testkit.Apply(t, "", object("Team", "a", "{}"))
		waitCondition(t, teams, "", "a", "Ready", "True")
		fault := faults.Answer(503, func(q *http.Request) bool {
			return q.Method == http.MethodGet && strings.HasSuffix(q.URL.Path, "/configmaps/claim")
		})
		r.reloadTo(head + roomDownstream + noteDownstream + tail)
		waitLeftover(t)
		r.reloadTo(head + strings.Replace(roomDownstream, "room-", "hall-", 1) + noteDownstream + tail)
		testkit.Eventually(t, patience, func() (bool, string) { return testkit.Find(t, namespaces, "", "hall-a") != nil, "no hall" })
		testkit.Eventually(t, patience, func() (bool, string) { return fault.Hits() > 2, "it is not read again" })
		if u := testkit.Get(t, namespaces, "", "room-a"); u.GetDeletionTimestamp() != nil {
			t.Errorf("the Namespace goes before it is known what is in it: %v", u.Object["metadata"])
		}
		fault.Off()
		waitThat(t, namespaces, "", "room-a", func(u *obj) bool { return len(u.GetOwnerReferences()) == 0 && u.GetDeletionTimestamp() == nil })
		never(t, func() (bool, string) {
			return testkit.Find(t, configMaps, "room-a", "claim") == nil, "the ConfigMap was deleted with the renamed Namespace"
		})
	})
}

// What the config forgets while it is being deleted goes: the Namespace that has it waits for that, and goes too.
func TestHolderOfWhatGoes(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"start", "reload"} {
		t.Run(at, spaced(func(t *testing.T, ns, name string) {
			head, tail := around(t, fill(widgetConfig, ns, name))
			conf := head + roomDownstream + replaceOnce(t, claimDownstream, "deletionPolicy: Orphan", "after: [room]") + tail + waiting
			r := start(t, testkit.Config(t), conf).ready()
			applyReady(t, ns, "a", "{}")
			holdFor(t, "room-a", "claim")
			testkit.Delete(t, widgets, ns, "a")
			waitThat(t, configMaps, "room-a", "claim", func(u *obj) bool { return u.GetDeletionTimestamp() != nil })
			r.become(at, replaceOnce(t, conf, "- name: claim", "- name: memo"))
			<-time.After(time.Hour)
			if u := testkit.Get(t, namespaces, "", "room-a"); u.GetDeletionTimestamp() != nil || len(u.GetAnnotations()) == 0 {
				t.Errorf("the Namespace was not kept until the ConfigMap is gone: %v", u.Object["metadata"])
			}
			letGo(t, "room-a", "claim")
			waitGone(t, widgets, ns, "a")
			waitGone(t, namespaces, "", "room-a")
		}))
	}
}

// A Namespace with the current owner annotation stays while an object in it has the former one.
func TestHolderOfFormerMarksStays(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		head, tail := around(t, fill(widgetConfig, ns, name))
		room := strings.Replace(roomDownstream, "    kind: Namespace\n", "    kind: Namespace\n    adoptionPolicy: IfUnowned\n", 1)
		conf := withoutRecord(t, head+room+claimDownstream+tail)
		r := start(t, testkit.Config(t), conf).ready()
		applyReady(t, ns, "a", "{}")
		r.restart(nil, replaceOnce(t, conf, fill("NAME.example.com/owner}", "", name), fill("NAME.example.com/owned-by}", "", name)))
		testkit.Eventually(t, patience, func() (bool, string) {
			u := testkit.Get(t, namespaces, "", "room-a")
			_, reason, message := condition(testkit.Get(t, widgets, ns, "a"), "Ready")
			return u.GetAnnotations()[name+".example.com/owned-by"] != "" && reason == "Conflict", reason + message
		})
		testkit.Delete(t, widgets, ns, "a")
		never(t, func() (bool, string) {
			u := testkit.Find(t, namespaces, "", "room-a")
			return testkit.Find(t, configMaps, "room-a", "claim") == nil || u == nil || u.GetDeletionTimestamp() != nil, "the ConfigMap (Orphan) was deleted with the Namespace"
		})
	})
}

// withRoom is a config of which each upstream makes the Namespace that it names, and a ConfigMap in it.
func withRoom(t *testing.T, conf string) string {
	t.Helper()
	head, tail := around(t, conf)
	return head + strings.Replace(roomDownstream, ".metadata.name", ".spec.name", 1) + `
  - name: note
    apiVersion: v1
    kind: ConfigMap
    targetNamespaces: {from: Any}
    template: |
      metadata: {name: "{{ .metadata.name }}", namespace: "room-{{ .spec.name }}"}
` + tail
}

// A Namespace is not deleted while it has an object of another upstream, whatever scope the upstreams have. Where the
// garbage collector deletes it after its upstream, without a finalizer, nobody can hold it.
func TestHolderOfAnotherUpstreamStays(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name    string
		scope   schema.GroupVersionResource
		deleted bool
	}{{"namespaced", widgets, true}, {"of the cluster", teams, true}, {"renamed only", teams, false}} {
		t.Run(row.name, bubbled(func(t *testing.T) {
			scope := row.scope
			ns, conf, named := "", teamConfig(t), func(name, spec string) string { return object("Team", name, spec) }
			if scope == widgets {
				ns, named = testkit.Namespace(t), widget
				conf = fill(widgetConfig, ns, testkit.Unique(t))
			}
			counter := testkit.NewCounter()
			start(t, counter.Wrap(testkit.Config(t)), withRoom(t, conf)+"\ndeletion: {wait: true}\n").ready()
			testkit.Apply(t, ns, named("a", "{name: one}"))
			waitCondition(t, scope, ns, "a", "Ready", "True")
			for _, other := range []string{"b", "c", "d"} {
				testkit.Apply(t, ns, named(other, "{name: one}"))
				testkit.Eventually(t, patience, func() (bool, string) {
					return testkit.Find(t, configMaps, "room-one", other) != nil, "nothing of " + other
				})
			}
			stays := func(step string) {
				t.Helper()
				never(t, func() (bool, string) {
					return testkit.Find(t, configMaps, "room-one", "b") == nil || testkit.Get(t, namespaces, "", "room-one").GetDeletionTimestamp() != nil,
						step + ": what belongs to b is deleted with the Namespace of a"
				})
			}
			testkit.Apply(t, ns, named("a", "{name: two}"))
			waitCondition(t, scope, ns, "a", "Ready", "True")
			stays("a is renamed")
			if !row.deleted {
				since := time.Now()
				for _, other := range []string{"b", "c", "d"} {
					deleteAndWait(t, scope, ns, other)
				}
				waitGone(t, namespaces, "", "room-one")
				if took := time.Since(since); took > 5*time.Second {
					t.Errorf("the Namespace waits for %s after the last object of others is gone", took)
				}
				return
			}
			testkit.Delete(t, scope, ns, "a")
			stays("a is deleted")
			before := counter.Mutating()
			stays("later")
			if n := counter.Mutating() - before; n > 0 {
				t.Errorf("while it waits, it writes %d times", n)
			}
			_, reason, message := condition(testkit.Get(t, scope, ns, "a"), "Ready")
			if want := "it stays until ConfigMap room-one/b of " + strings.TrimPrefix(ns+"/b", "/") + ", which is in it, is gone"; !strings.Contains(message, want) {
				t.Errorf("Ready is %s: %q, want %q", reason, message, want)
			}
			for _, other := range []string{"b", "c", "d"} {
				deleteAndWait(t, scope, ns, other)
			}
			waitGone(t, scope, ns, "a")
			waitGone(t, namespaces, "", "room-one")
		}))
	}
}

// It stays, too, while it has an object of an upstream that the watch does not show: nobody knows whether it is one, or
// it is left over.
func TestHolderOfAHiddenUpstreamStays(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, selection string }{
		{"a match condition cannot be evaluated", gold}, {"left over", "labelSelector: {matchLabels: {tier: gold}}"},
	} {
		t.Run(row.name, bubbled(func(t *testing.T) {
			ns := testkit.Namespace(t)
			conf := fill(widgetConfig, ns, testkit.Unique(t)) + "parameters: {tier: gold}\n"
			conf = withRoom(t, conf)
			r := start(t, testkit.Config(t), conf).ready()
			testkit.Apply(t, ns, annotated("a", "tier: gold", "{name: one}"))
			waitCondition(t, widgets, ns, "a", "Ready", "True")
			testkit.Apply(t, ns, widget("b", "{name: one}"))
			testkit.Patch(t, widgets, ns, "a", "somebody", `{"metadata": {"labels": {"tier": "gold"}}}`)
			testkit.Eventually(t, patience, func() (bool, string) { return testkit.Find(t, configMaps, "room-one", "b") != nil, "nothing of b" })
			r.restart(nil, watched(conf, row.selection))
			testkit.Delete(t, widgets, ns, "a")
			never(t, func() (bool, string) {
				return testkit.Find(t, configMaps, "room-one", "b") == nil || testkit.Get(t, namespaces, "", "room-one").GetDeletionTimestamp() != nil,
					"what belongs to b is deleted with the Namespace of a"
			})
		}))
	}
}

// An object without any mark, of which the status records the uid and the API server that we applied it, is still ours: it
// was stripped, not released. It is kept with its Namespace, and its values go on.
func TestStrippedOfAllMarks(t *testing.T) {
	t.Parallel()
	strip := func(t *testing.T, kind schema.GroupVersionResource, ns, name string) {
		t.Helper()
		testkit.Patch(t, kind, ns, name, "somebody", `{"metadata":{"labels":null,"annotations":null,"ownerReferences":null}}`)
	}
	for _, how := range []string{"not wanted", "deleted", "forgotten"} {
		t.Run(how, spaced(func(t *testing.T, ns, name string) {
			head, tail := around(t, fill(widgetConfig, ns, name))
			unless := "    when: self.spec.?name.orValue('') != 'gone'\n    template: |\n"
			room := strings.Replace(roomDownstream, "    template: |\n", unless, 1)
			claim := strings.Replace(claimDownstream, "    template: |\n", unless, 1)
			claim = strings.TrimSuffix(claim, "\n") + "\n      data: {key: value}\n"
			conf := head + room + claim + tail + "guard: {maxDeleted: 100%}\n"
			r := start(t, testkit.Config(t), conf).ready()
			applyReady(t, ns, "a", "{}")
			r.halt()
			strip(t, configMaps, "room-a", "claim")
			switch how {
			case "not wanted":
				testkit.Apply(t, ns, widget("a", "{name: gone}"))
			case "deleted":
				testkit.Delete(t, widgets, ns, "a")
			case "forgotten":
				conf = head + strings.Replace(room, "!= 'gone'", "== 'gone'", 1) + tail + "guard: {maxDeleted: 100%}\n"
			}
			start(t, testkit.Config(t), conf)
			<-time.After(time.Hour)
			u := testkit.Find(t, namespaces, "", "room-a")
			if testkit.Find(t, configMaps, "room-a", "claim") == nil || u == nil || u.GetDeletionTimestamp() != nil {
				t.Error("the ConfigMap (Orphan) was deleted with its Namespace")
			}
		}))
	}
	t.Run("values", spaced(func(t *testing.T, ns, name string) {
		conf := siblingsConfig(t, ns, name, "")
		r := start(t, testkit.Config(t), conf).ready()
		testkit.Apply(t, ns, widget("a", "{name: s1, data: {second: s2}}"))
		value := secretText(t, ns, "s1", "password", anyText)
		waitCondition(t, widgets, ns, "a", "Ready", "True")
		r.halt()
		strip(t, secretKind, ns, "s1")
		testkit.Apply(t, ns, widget("a", "{name: q1, data: {second: s2}}"))
		start(t, testkit.Config(t), conf).ready()
		<-time.After(10 * time.Minute)
		keepsValue(t, ns, "q1", value)
	}))
}
