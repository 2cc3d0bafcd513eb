package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// conventions are the lines of a config that a test changes.
type conventions struct {
	fieldManager, labels, hash, owner, finalizer, previous string
}

// base are the conventions of widgetConfig, for an operator of that name.
func base(name string) conventions {
	domain := name + ".example.com/"
	return conventions{fieldManager: name, labels: "{" + domain + `managed: "yes"}`, hash: "{annotation: " + domain + "hash}",
		owner: "{annotation: " + domain + "owner}", finalizer: domain + "cleanup"}
}

// conventionLine is the key of a line of a config, and its value.
type conventionLine struct {
	key   string
	value *string
}

// lines are the lines that may differ; previous names what those before the labels were.
func (c *conventions) lines() []conventionLine {
	return []conventionLine{{"fieldManager", &c.fieldManager}, {"finalizer", &c.finalizer}, {"hash", &c.hash}, {"owner", &c.owner}, {"labels", &c.labels}}
}

// in puts conventions into a config that has those of base.
func (c conventions) in(conf, name string) string {
	was := base(name)
	for i, line := range c.lines() {
		conf = strings.Replace(conf, "  "+line.key+": "+*was.lines()[i].value+"\n", "  "+line.key+": "+*line.value+"\n", 1)
	}
	if c.previous != "" {
		conf = strings.Replace(conf, "conventions:\n", "conventions:\n  previous: {"+c.previous+"}\n", 1)
	}
	return conf
}

// with returns the conventions of base for an operator of that name, with those lines of others that are not empty.
func (c conventions) with(name string) conventions {
	is := base(name)
	for i, line := range is.lines() {
		if other := *c.lines()[i].value; other != "" {
			*line.value = strings.ReplaceAll(other, "NAME", name)
		}
	}
	return is
}

// after returns the conventions with what they were before.
func (c conventions) after(was conventions) conventions {
	var previous []string
	for i, line := range c.lines()[:4] {
		if old := *was.lines()[i].value; *line.value != old {
			previous = append(previous, line.key+": "+old)
		}
	}
	c.previous = strings.Join(previous, ", ")
	return c
}

// The requests that carrying over is made of.
const (
	readDownstream  = "GET configmaps"
	writeDownstream = "PATCH configmaps"
	writeUpstream   = "PATCH widgets"
	writeStatus     = "PATCH widgets/status"
)

// previousCase is a change of conventions, and what it costs.
type previousCase struct {
	name, reason string
	// near is true if downstreams are in the upstream's namespace, where an owner reference is legal.
	near bool
	// was and is have what differs from base.
	was, is conventions
	// requests are those that each object costs, its upstream included, on the way back, too.
	requests map[string]int
}

func previousCases() []previousCase {
	one := map[string]int{writeDownstream: 1}
	unreferenced := conventions{owner: "{reference: false, annotation: NAME.example.com/owner}"}
	return []previousCase{
		{name: "manager", reason: "one patch of managedFields, one apply; and the status gets to be the new manager's, and is no longer the old one's",
			is: conventions{fieldManager: "NAME-new"}, requests: map[string]int{readDownstream: 1, writeDownstream: 2, writeStatus: 2}},
		{name: "hash-label", reason: "one apply moves the hash", is: conventions{hash: "{label: NAME.example.com/digest}"}, requests: one},
		{name: "hash-key", reason: "one apply renames its key", is: conventions{hash: "{annotation: NAME.example.com/digest}"}, requests: one},
		{name: "owner", reason: "one apply renames the annotation", is: conventions{owner: "{annotation: NAME.example.com/upstream}"}, requests: one},
		{name: "finalizer", reason: "one patch of the upstream", is: conventions{finalizer: "NAME.example.com/hold"}, requests: map[string]int{writeUpstream: 1}},
		{name: "reference", near: true, reason: "one apply, and the finalizer goes", was: unreferenced,
			requests: map[string]int{writeDownstream: 1, writeUpstream: 1}},
		{name: "annotation", near: true, reason: "the finalizer comes, and one apply", is: unreferenced,
			requests: map[string]int{writeDownstream: 1, writeUpstream: 1}},
		{name: "all", reason: "the object is met by a create that is refused, read, taken over and applied; the upstream gets its finalizer; its status " +
			"has another hash, since the labels are part of it, and what the previous manager had of it is removed",
			is: conventions{fieldManager: "NAME-new", labels: `{NAME.example.com/operated: "yes"}`, hash: "{label: NAME.example.com/digest}",
				owner: "{annotation: NAME.example.com/upstream}", finalizer: "NAME.example.com/hold"},
			requests: map[string]int{readDownstream: 2, writeDownstream: 3, writeUpstream: 1, writeStatus: 2}},
	}
}

const previousObjects = 8

// TestPreviousNames changes each convention alone, and all of them at once, over objects that stand: by a restart, and
// while the process runs; and back again. Every object is the same one afterwards, bears nothing from before, is ours
// alone, and costs nothing more.
func TestPreviousNames(t *testing.T) {
	t.Parallel()
	for _, c := range previousCases() {
		for _, live := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, live %v", c.name, live), bubbled(func(t *testing.T) {
				ns, other := testkit.Namespace(t), testkit.Namespace(t)
				operator := testkit.Unique(t)
				at, conf, was, is := ns, fill(widgetConfig, ns, operator), c.was.with(operator), c.is.with(operator)
				back := was
				if !c.near {
					at, conf, is, back = other, elsewhere(conf, other, ns), is.after(was), was.after(is)
				}
				r, counter := startCounted(t, was.in(conf, operator))
				applyMany(t, ns, previousObjects, `{namespace: `+at+`, data: {key: value}}`)
				var objects []*unstructured.Unstructured
				for i := range previousObjects {
					objects = append(objects, waitData(t, at, named(i), "key", "value"))
				}
				for _, step := range []struct{ of, not conventions }{{is, was}, {back, is}} {
					settle(t, counter)
					if live {
						r.changeTo(operator, step.of.in(conf, operator))
					} else {
						r.halt()
						r = start(t, counter.Wrap(testkit.Config(t)), step.of.in(conf, operator)).ready()
					}
					checkPreviousReplaced(t, ns, step.of, step.not, objects)
					quiet(t, counter)
					checkRequests(t, counter, c)
					r = r.restart(counter, step.of.in(conf, operator))
					exactly(t, counter, 0, "a restart afterwards", func(r testkit.Request) bool { return r.Mutating() || r.Key() == readDownstream })
				}
			}))
		}
	}
}

// checkPreviousReplaced waits until every object is of conventions and bears nothing of the others.
func checkPreviousReplaced(t *testing.T, ns string, of, not conventions, objects []*unstructured.Unstructured) {
	t.Helper()
	for _, was := range objects {
		testkit.Eventually(t, patience, func() (bool, string) {
			return isOf(testkit.Get(t, configMaps, was.GetNamespace(), was.GetName()), testkit.Get(t, widgets, ns, was.GetName()), of, not)
		})
		mustBeSame(t, configMaps, was, "it is carried over")
	}
	if n := len(testkit.List(t, configMaps, objects[0].GetNamespace(), "")); n != len(objects) {
		t.Errorf("there are %d ConfigMaps, want %d", n, len(objects))
	}
}

func isOf(cm, up *unstructured.Unstructured, of, not conventions) (bool, string) {
	for _, e := range cm.GetManagedFields() {
		if e.Manager != of.fieldManager || e.Operation != "Apply" {
			return false, "a field belongs to " + e.Manager + ", " + string(e.Operation)
		}
	}
	for _, pair := range [][2]string{{of.hash, not.hash}, {of.owner, not.owner}, {of.labels, not.labels}} {
		have, had := keyIn(pair[0]), keyIn(pair[1])
		if have == had {
			continue
		}
		if bears(cm, had) || !bears(cm, have) {
			return false, fmt.Sprintf("labels are %v, annotations are %v", cm.GetLabels(), cm.GetAnnotations())
		}
	}
	referring := cm.GetNamespace() == up.GetNamespace() && !strings.Contains(of.owner, "reference: false")
	if refs := cm.GetOwnerReferences(); referring != (len(refs) == 1) {
		return false, fmt.Sprintf("references are %v", refs)
	}
	fs := up.GetFinalizers()
	if not.finalizer != of.finalizer && slices.Contains(fs, not.finalizer) || len(fs) > 1 || referring == slices.Contains(fs, of.finalizer) {
		return false, fmt.Sprintf("finalizers are %v", fs)
	}
	return true, ""
}

// keyIn is the key that a line of conventions names.
func keyIn(line string) string {
	parts := strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune("{}:, ", r) })
	i := slices.IndexFunc(parts, func(p string) bool { return strings.Contains(p, "/") })
	return parts[i]
}

func bears(u *unstructured.Unstructured, key string) bool {
	_, label := u.GetLabels()[key]
	_, annotation := u.GetAnnotations()[key]
	return label || annotation
}

func checkRequests(t *testing.T, counter *testkit.Counter, c previousCase) {
	t.Helper()
	got := counter.Snapshot()
	t.Logf("%s: %v for %d objects", c.name, got, previousObjects)
	for _, kind := range []string{readDownstream, writeDownstream, writeUpstream, writeStatus} {
		if got[kind] > c.requests[kind]*previousObjects {
			t.Errorf("%s (%s): %d %s for %d objects, want %d for each", c.name, c.reason, got[kind], kind, previousObjects, c.requests[kind])
		}
	}
}

// renamed are the conventions of base, all of them but the labels under other names, with what they were.
func renamed(name string) conventions {
	return conventions{fieldManager: "NAME-new", hash: "{label: NAME.example.com/digest}", owner: "{annotation: NAME.example.com/upstream}",
		finalizer: "NAME.example.com/hold"}.with(name).after(base(name))
}

// keyed is a condition for requests of that kind.
func keyed(key string) func(testkit.Request) bool {
	return func(r testkit.Request) bool { return r.Key() == key }
}

// A manager that is renamed without conventions.previous costs one apply and loses nothing: what it owned stays
// co-owned, which is reported if a field is removed then. If previous is added later, the fields are still taken over.
func TestManagerRenamedWithoutPrevious(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		conf := strings.Replace(fill(widgetConfig, ns, name), "events: None", "events: All", 1)
		r, counter := startMade(t, ns, conf)
		uid := testkit.Get(t, configMaps, ns, "a").GetUID()
		r.halt()
		untold := base(name)
		untold.fieldManager = name + "-new"
		r = start(t, counter.Wrap(testkit.Config(t)), untold.in(conf, name)).ready()
		testkit.Eventually(t, patience, func() (bool, string) { return counter.Snapshot()[writeDownstream] == 1, "no apply" })
		exactly(t, counter, 1, "a manager that is renamed", keyed(writeDownstream))
		testkit.Patch(t, widgets, ns, "a", "somebody", `{"spec":{"data":{"key":null,"other":"value"}}}`)
		cm := waitData(t, ns, "a", "other", "value")
		waitEvent(t, ns, "a", "FieldKept", ".data.key")
		if have, _, _ := unstructured.NestedString(cm.Object, "data", "key"); have != "value" || cm.GetUID() != uid {
			t.Errorf("the co-owned field is %q", have)
		}
		r.halt()
		told := untold
		told.previous = "fieldManager: " + name
		start(t, counter.Wrap(testkit.Config(t)), told.in(conf, name)).ready()
		waitData(t, ns, "a", "key", "")
		testkit.Eventually(t, patience, func() (bool, string) {
			return isOf(testkit.Get(t, configMaps, ns, "a"), testkit.Get(t, widgets, ns, "a"), told, base(name))
		})
	})
}

// What is made once gets the current marks, and is not applied again.
func TestPreviousOfCreateOnly(t *testing.T) {
	inSpaces(t, func(t *testing.T, ns, other, name string) {
		conf := elsewhere(with(fill(widgetConfig, ns, name), "updatePolicy: CreateOnly"), other, ns)
		r := start(t, testkit.Config(t), conf).ready()
		applyReady(t, ns, "a", `{namespace: `+other+`, data: {key: value}}`)
		testkit.Patch(t, configMaps, other, "a", "rotation", `{"data":{"key":"rotated"}}`)
		r.halt()
		counter := testkit.NewCounter()
		is := renamed(name)
		is.labels = strings.Replace(is.labels, "managed", "operated", 1)
		r = start(t, counter.Wrap(testkit.Config(t)), is.in(conf, name)).ready()
		domain := name + ".example.com/"
		testkit.Eventually(t, patience, func() (bool, string) {
			cm := testkit.Get(t, configMaps, other, "a")
			return !bears(cm, domain+"hash") && !bears(cm, domain+"owner") && bears(cm, domain+"digest") && bears(cm, domain+"upstream") && bears(cm, domain+"operated"),
				fmt.Sprint(cm.Object["metadata"])
		})
		quiet(t, counter)
		waitData(t, other, "a", "key", "rotated")
		r = r.restart(counter, is.in(conf, name))
		atMostWrites(t, counter, 0, "a restart afterwards")
		deleteBoth(t, ns, other, "a")
		r.halt()
	})
}

// An initial field that only the manager from before owned keeps the value that it has.
func TestPreviousInitialFields(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		conf := with(fill(widgetConfig, ns, name), "drift: {initialFields: [.data.key]}")
		r := start(t, testkit.Config(t), conf).ready()
		applyReady(t, ns, "a", `{data: {key: value, other: x}}`)
		waitData(t, ns, "a", "key", "value")
		r.halt()
		testkit.Patch(t, widgets, ns, "a", "somebody", `{"spec":{"data":{"key":"new"}}}`)
		is := renamed(name)
		_, counter := startCounted(t, is.in(conf, name))
		testkit.Eventually(t, patience, func() (bool, string) {
			return isOf(testkit.Get(t, configMaps, ns, "a"), testkit.Get(t, widgets, ns, "a"), is, conventions{hash: base(name).hash, owner: is.owner, labels: is.labels})
		})
		quiet(t, counter)
		waitData(t, ns, "a", "key", "value")
	})
}

// A mark from before that someone else owns too is taken off all the same, and asked for once.
func TestPreviousCoOwned(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		conf := fill(widgetConfig, ns, name)
		r, counter := startMade(t, ns, conf)
		key := name + ".example.com/hash"
		hash := testkit.Get(t, configMaps, ns, "a").GetAnnotations()[key]
		testkit.Apply(t, ns, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {`+key+`: `+hash+`}}}`)
		r.restart(counter, renamed(name).in(conf, name))
		waitThat(t, configMaps, ns, "a", func(cm *obj) bool { return !bears(cm, key) })
		exactly(t, counter, 3, "a patch, an apply and the removal of the mark", keyed(writeDownstream))
	})
}
