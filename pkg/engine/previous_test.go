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

// in puts conventions into a config that has those of base.
func (c conventions) in(conf, name string) string {
	was := base(name)
	replace := []string{}
	for _, pair := range [][3]string{
		{"fieldManager", was.fieldManager, c.fieldManager}, {"labels", was.labels, c.labels}, {"hash", was.hash, c.hash},
		{"owner", was.owner, c.owner}, {"finalizer", was.finalizer, c.finalizer},
	} {
		replace = append(replace, "  "+pair[0]+": "+pair[1]+"\n", "  "+pair[0]+": "+pair[2]+"\n")
	}
	conf = strings.NewReplacer(replace...).Replace(conf)
	if c.previous != "" {
		conf = strings.Replace(conf, "conventions:\n", "conventions:\n  previous: {"+c.previous+"}\n", 1)
	}
	return conf
}

// previousCase is a change of conventions, and what it costs.
type previousCase struct {
	name, reason string
	// near tells that downstreams stand in the upstream's namespace, where a reference is legal.
	near bool
	// before and after change what base has; previous stands in after.
	before, after func(c *conventions, domain string)
	// requests are those that each object costs, its upstream included, on the way back, too.
	requests map[string]int
}

// The requests that carrying over is made of.
const (
	readDownstream  = "GET configmaps"
	writeDownstream = "PATCH configmaps"
	writeUpstream   = "PATCH widgets"
	writeStatus     = "PATCH widgets/status"
)

func previousCases() []previousCase {
	none := func(*conventions, string) {}
	one := map[string]int{writeDownstream: 1}
	return []previousCase{
		{name: "manager", reason: "one patch of managedFields, one apply; and the status gets to be the new manager's, and is no longer the old one's", before: none, after: func(c *conventions, _ string) {
			c.previous, c.fieldManager = "fieldManager: "+c.fieldManager, c.fieldManager+"-new"
		}, requests: map[string]int{readDownstream: 1, writeDownstream: 2, writeStatus: 2}},
		{name: "hash-label", reason: "one apply moves the hash", before: none, after: func(c *conventions, domain string) {
			c.previous, c.hash = "hash: "+c.hash, "{label: "+domain+"digest}"
		}, requests: one},
		{name: "hash-key", reason: "one apply renames its key", before: none, after: func(c *conventions, domain string) {
			c.previous, c.hash = "hash: "+c.hash, "{annotation: "+domain+"digest}"
		}, requests: one},
		{name: "owner", reason: "one apply renames the annotation", before: none, after: func(c *conventions, domain string) {
			c.previous, c.owner = "owner: "+c.owner, "{annotation: "+domain+"upstream}"
		}, requests: one},
		{name: "finalizer", reason: "one patch of the upstream", before: none, after: func(c *conventions, domain string) {
			c.previous, c.finalizer = "finalizer: "+c.finalizer, domain+"hold"
		}, requests: map[string]int{writeUpstream: 1}},
		{name: "reference", near: true, reason: "one apply, and the finalizer goes", before: func(c *conventions, domain string) {
			c.owner = "{reference: false, annotation: " + domain + "owner}"
		}, after: none, requests: map[string]int{writeDownstream: 1, writeUpstream: 1}},
		{name: "annotation", near: true, reason: "the finalizer comes, and one apply", before: none, after: func(c *conventions, domain string) {
			c.owner = "{reference: false, annotation: " + domain + "owner}"
		}, requests: map[string]int{writeDownstream: 1, writeUpstream: 1}},
		{name: "all", reason: "the object is met by a create that is refused, read, taken over and applied; the upstream gets its finalizer; its status " +
			"has another hash, for the labels are part of it, and what the manager of before had of it goes", before: none,
			after: func(c *conventions, domain string) {
				c.previous = "fieldManager: " + c.fieldManager + ", finalizer: " + c.finalizer + ", hash: " + c.hash + ", owner: " + c.owner
				*c = conventions{fieldManager: c.fieldManager + "-new", labels: "{" + domain + `operated: "yes"}`, hash: "{label: " + domain + "digest}",
					owner: "{annotation: " + domain + "upstream}", finalizer: domain + "hold", previous: c.previous}
			}, requests: map[string]int{readDownstream: 2, writeDownstream: 3, writeUpstream: 1, writeStatus: 2}},
	}
}

// configs returns the config before, after, and after a rollback.
func (c previousCase) configs(name, ns, other string) (before, after, back string, was, is conventions) {
	domain := name + ".example.com/"
	conf := fill(widgetConfig, ns, name)
	if !c.near {
		conf = elsewhere(conf, other, ns)
	}
	was = base(name)
	c.before(&was, domain)
	is = was
	c.after(&is, domain)
	if is == was { // the change was to come from it
		is = base(name)
	}
	swapped := was
	for key, pair := range map[string][2]string{"fieldManager": {was.fieldManager, is.fieldManager}, "finalizer": {was.finalizer, is.finalizer}, "hash": {was.hash, is.hash}, "owner": {was.owner, is.owner}} {
		if pair[0] != pair[1] && !c.near {
			swapped.previous += ", " + key + ": " + pair[1]
		}
	}
	swapped.previous = strings.TrimPrefix(swapped.previous, ", ")
	return was.in(conf, name), is.in(conf, name), swapped.in(conf, name), was, is
}

const previousObjects = 8

// TestPreviousNames changes each convention alone, and all of them at once, over objects that stand: by a restart, and
// while the process runs; and back again. Every object is the same one afterwards, bears nothing of before, is ours
// alone, and costs nothing more.
func TestPreviousNames(t *testing.T) {
	t.Parallel()
	for _, c := range previousCases() {
		for _, live := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, live %v", c.name, live), bubbled(func(t *testing.T) {
				ns, other := testkit.Namespace(t), testkit.Namespace(t)
				operator := testkit.Unique(t)
				before, after, back, was, is := c.configs(operator, ns, other)
				at := other
				if c.near {
					at = ns
				}
				r, counter := startCounted(t, before)
				for i := range previousObjects {
					testkit.Apply(t, ns, widget(named(i), `{namespace: `+at+`, data: {key: value}}`))
				}
				uids := map[string]string{}
				for i := range previousObjects {
					uids[named(i)] = string(waitData(t, at, named(i), "key", "value").GetUID())
					waitCondition(t, widgets, ns, named(i), "Ready", "True")
				}
				for _, step := range []struct {
					conf    string
					of, not conventions
				}{{after, is, was}, {back, was, is}} {
					settle(t, counter)
					if live {
						r.changeTo(operator, step.conf)
					} else {
						r.halt()
						r = start(t, counter.Wrap(testkit.Config(t)), step.conf).ready()
					}
					checkPreviousReplaced(t, ns, at, step.of, step.not, uids)
					quiet(t, counter)
					checkRequests(t, counter, c)
					counter.Reset()
					r.halt()
					r = start(t, counter.Wrap(testkit.Config(t)), step.conf).ready()
					quiet(t, counter)
					if n := counter.Mutating(); n > 0 || counter.Snapshot()[readDownstream] > 0 {
						t.Errorf("a restart afterwards: %v", counter.Snapshot())
					}
				}
			}))
		}
	}
}

// checkPreviousReplaced waits until every object is of conventions and bears nothing of the others.
func checkPreviousReplaced(t *testing.T, ns, at string, of, not conventions, uids map[string]string) {
	t.Helper()
	for name, uid := range uids {
		testkit.Eventually(t, patience, func() (bool, string) {
			cm, up := testkit.Find(t, configMaps, at, name), testkit.Find(t, widgets, ns, name)
			if cm == nil || up == nil {
				t.Fatalf("%s is gone", name)
			}
			if string(cm.GetUID()) != uid {
				t.Fatalf("%s is another object", name)
			}
			return isOf(cm, up, of, not)
		})
	}
	if list := testkit.List(t, configMaps, at, ""); len(list) != len(uids) && !slices.ContainsFunc(list, isRootCA) {
		t.Errorf("there are %d ConfigMaps, want %d", len(list), len(uids))
	}
}

func isRootCA(u unstructured.Unstructured) bool { return u.GetName() == "kube-root-ca.crt" }

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

// renamed are the conventions of base, all of them under other names, with what they were.
func renamed(name string) conventions {
	was, domain := base(name), name+".example.com/"
	return conventions{fieldManager: name + "-new", labels: was.labels, hash: "{label: " + domain + "digest}", owner: "{annotation: " + domain + "upstream}", finalizer: domain + "hold",
		previous: "fieldManager: " + was.fieldManager + ", finalizer: " + was.finalizer + ", hash: " + was.hash + ", owner: " + was.owner}
}

// keyed is a condition for requests of that kind.
func keyed(key string) func(testkit.Request) bool {
	return func(r testkit.Request) bool { return r.Key() == key }
}

// A deletion that falls into the change is finished by the names of before: nothing is left behind, and nothing held.
func TestDeletionDuringChange(t *testing.T) {
	t.Parallel()
	for _, policy := range []string{"Delete", "Orphan"} {
		t.Run(policy, spacedTwice(func(t *testing.T, ns, other, name string) {
			conf := elsewhere(with(fill(widgetConfig, ns, name), "deletionPolicy: "+policy), other, ns)
			r := start(t, testkit.Config(t), conf).ready()
			applyReady(t, ns, "a", `{namespace: `+other+`, data: {key: value}}`)
			r.halt()
			testkit.Delete(t, widgets, ns, "a")
			start(t, testkit.Config(t), renamed(name).in(conf, name)).ready()
			waitGone(t, widgets, ns, "a")
			if policy == "Delete" {
				waitGone(t, configMaps, other, "a")
				return
			}
			cm := waitData(t, other, "a", "key", "value")
			if len(cm.GetLabels())+len(cm.GetAnnotations())+len(cm.GetOwnerReferences())+len(cm.GetManagedFields()) > 0 {
				t.Errorf("released, but marked still: %v", cm.Object["metadata"])
			}
		}))
	}
}

// A condition that only the previous manager set does not stay forever.
func TestConditionOfPreviousManager(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		conf := fill(widgetConfig, ns, name)
		testkit.Apply(t, ns, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {key: theirs}}`)
		r := start(t, testkit.Config(t), conf).ready()
		testkit.Apply(t, ns, widget("a", `{data: {key: value}}`))
		waitCondition(t, widgets, ns, "a", "Stalled", "True")
		r.halt()
		testkit.Delete(t, configMaps, ns, "a")
		_, counter := startCounted(t, renamed(name).in(conf, name))
		waitCondition(t, widgets, ns, "a", "Ready", "True")
		quiet(t, counter)
		up := testkit.Get(t, widgets, ns, "a")
		conditionIs(t, up, "Stalled", "")
		for _, e := range up.GetManagedFields() {
			if e.Manager == name {
				t.Errorf("the earlier manager has %s %s still", e.Operation, e.Subresource)
			}
		}
		exactly(t, counter, 2, "the status is written once, and once for the earlier manager", keyed(writeStatus))
	})
}

// A manager that is renamed without conventions.previous costs one apply and loses nothing: what it owned stays co-owned, which is
// reported if a field is removed then. If previous is added later, the fields are still taken over.
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

// What is made once gets the marks of now, and is not applied again.
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
		r.halt()
		counter.Reset()
		r = start(t, counter.Wrap(testkit.Config(t)), is.in(conf, name)).ready()
		atMostWrites(t, counter, 0, "a restart afterwards")
		deleteAndWait(t, widgets, ns, "a")
		waitGone(t, configMaps, other, "a")
		r.halt()
	})
}

// An initial field that only the manager of before owned keeps the value that it has.
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

// A mark of before that somebody else owns too is taken off all the same, and asked for once.
func TestPreviousCoOwned(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		conf := fill(widgetConfig, ns, name)
		r, counter := startMade(t, ns, conf)
		key := name + ".example.com/hash"
		hash := testkit.Get(t, configMaps, ns, "a").GetAnnotations()[key]
		testkit.Apply(t, ns, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {`+key+`: `+hash+`}}}`)
		r.halt()
		counter.Reset()
		start(t, counter.Wrap(testkit.Config(t)), renamed(name).in(conf, name)).ready()
		testkit.Eventually(t, patience, func() (bool, string) {
			cm := testkit.Get(t, configMaps, ns, "a")
			return !bears(cm, key), fmt.Sprint(cm.GetAnnotations())
		})
		exactly(t, counter, 3, "a patch, an apply and the removal of the mark", keyed(writeDownstream))
	})
}
