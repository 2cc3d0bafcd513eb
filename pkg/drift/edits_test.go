//go:build controlplane

package drift_test

import (
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	mathrand "math/rand/v2"
	"reflect"
	"slices"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/internal/testkit"
	requests "github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/canonical"
	"github.com/corollary-dev/corollary/pkg/drift"
)

var (
	sampled = flag.Int("sampled", 1, "TestEveryEdit: how many times as many edits as usual; the more, the longer it takes")
	numbers atomic.Int64
)

// setOnce are fields that nobody can unset in the API server.
var setOnce = map[string]string{
	"Node.spec.podCIDR": "a node keeps the range that it got", "Node.spec.podCIDRs": "a node keeps the ranges that it got",
}

// hashKey is the annotation with the hash of the objects.
const hashKey = "drift.example.com/hash"

// edited is an object of ours, and the edits of others.
type edited struct {
	t       *testing.T
	kind    *served
	view    *drift.View
	ns      string
	client  *requests.Client
	target  requests.Target
	seed    map[string]any
	desired map[string]any // with the hash
	hash    string
	live    *unstructured.Unstructured
	base    *drift.Live
	wrote   bool // an edit has changed it
}

var errNothingToDo = errors.New("there is nothing to do")

// TestEveryEdit returns a search: it applies objects of every kind with one more field, empty or not, and then changes
// them as another client could. If the digest says in sync, an apply must change nothing and our values must be the
// same; if not, one apply must restore them.
func TestEveryEdit(t *testing.T) {
	ns := testkit.Namespace(t)
	var kinds, tried, seen atomic.Int64
	t.Run("kinds", func(t *testing.T) {
		for _, kind := range kindsServed(t) {
			t.Run(kind.gvk.Kind+"."+kind.gvk.Group, func(t *testing.T) {
				t.Parallel()
				edits, detected := searchKind(t, ns, kind)
				kinds.Add(1)
				tried.Add(int64(edits))
				seen.Add(int64(detected))
			})
		}
	})
	t.Logf("%d edits, of which %d are drift", tried.Load(), seen.Load())
	if !t.Failed() && tried.Load() < 20*kinds.Load() {
		t.Errorf("the API server took only %d edits of %d kinds", tried.Load(), kinds.Load())
	}
}

// sample returns how many places of a kind, and how many edits of each, are tested.
func (k *served) sample() (places, editsOfEach int) {
	if k.gvk.Group == "drift.example.com" {
		return 40 * *sampled, 6 * *sampled
	}
	return 8 * *sampled, 5 * *sampled
}

func searchKind(t *testing.T, ns string, kind *served) (tried, detected int) {
	seed := fnv.New64()
	seed.Write([]byte(kind.gvk.String()))
	random := mathrand.New(mathrand.NewPCG(seed.Sum64(), 1))
	maxPlaces, maxEdits := kind.sample()
	done := 0
	for _, p := range kind.documents(t, ns, random) {
		if done >= maxPlaces {
			break
		}
		o := &edited{t: t, kind: kind, ns: ns, client: requests.New(testkit.Dynamic(t), manager), seed: p.seed,
			view: &drift.View{Manager: manager, Hash: drift.Key{Annotation: hashKey}, Exclusive: p.exclusive}}
		if !o.make(p.doc) || !o.settles(p.at) {
			continue
		}
		done++
		want, _ := valueIn(o.desired, p.at.path)
		have, _ := valueIn(o.live.Object, p.at.path)
		list := edits(p.at, want, have)
		random.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		taken := 0
		for _, e := range list {
			if taken >= maxEdits || o.live == nil && !o.make(p.doc) {
				break
			}
			after, err := e.run(o)
			if err == nil {
				taken++
				if o.checkEdit(p.at, p.at.String()+" = "+short(want)+": "+e.name, after) {
					detected++
				}
			}
			if o.wrote || err == nil {
				o.delete()
			}
		}
		tried += taken
		o.delete()
	}
	if done == 0 {
		t.Error("the API server takes none of the documents: testdata/seeds.yaml needs one")
	}
	return tried, detected
}

// make creates the object by one apply, as Corollary does.
func (o *edited) make(doc map[string]any) bool {
	o.t.Helper()
	o.wrote, o.live = false, nil
	doc = o.kind.named(doc)
	doc, err := canonical.Form(doc)
	if err != nil {
		return false
	}
	u := &unstructured.Unstructured{Object: doc}
	o.target = requests.Target{GVR: o.kind.gvr, Name: u.GetName()}
	if o.kind.namespaced {
		o.target.Namespace = o.ns
		u.SetNamespace(o.ns)
	}
	o.hash = canonical.Hash(canonical.SHA256, doc)
	setIn(doc, []any{"metadata", "annotations", hashKey}, o.hash)
	o.desired = doc
	live, err := o.client.Create(o.t.Context(), o.target, doc)
	if err != nil {
		return false
	}
	o.live = live
	o.base = o.view.Live(live)
	return !o.base.Extra // otherwise the API server has added keys
}

// settles reports whether applying the same document again changes nothing. That is false for some: an item {} of a
// list whose keys all have defaults comes and goes, and a ServiceAccount's secret with an empty name is accepted once
// and then refused.
func (o *edited) settles(at place) bool {
	o.t.Helper()
	would, err := o.client.DryRunApply(o.t.Context(), o.target, o.live.GetUID(), o.desired)
	if err != nil {
		o.t.Logf("%s: a second apply is refused: %v", at, err)
		return false
	}
	diff := o.changedBy(o.live, would)
	if diff != "" {
		o.t.Logf("%s: a second apply changes it:\n%s", at, diff)
	}
	return diff == ""
}

func (o *edited) delete() {
	if o.live != nil && (!o.kind.namespaced || o.kind.gvk.Kind == "Service") {
		_ = testkit.Dynamic(o.t).Resource(o.kind.gvr).Namespace(o.target.Namespace).Delete(o.t.Context(), o.target.Name, metav1.DeleteOptions{})
	}
	o.live = nil
}

// update writes a changed copy of u by a PUT.
func (o *edited) update(u *unstructured.Unstructured, c change, manager string) (*unstructured.Unstructured, error) {
	changed := u.DeepCopy()
	if !c(changed.Object) {
		return nil, errNothingToDo
	}
	out, err := testkit.Dynamic(o.t).Resource(o.kind.gvr).Namespace(o.target.Namespace).Update(o.t.Context(), changed,
		metav1.UpdateOptions{FieldManager: manager})
	o.wrote = o.wrote || err == nil
	return out, err
}

// apply force-applies a document with any manager.
func (o *edited) apply(manager string, doc map[string]any) (*unstructured.Unstructured, error) {
	out, err := requests.New(testkit.Dynamic(o.t), manager).Apply(o.t.Context(), o.target, o.live.GetUID(), doc)
	o.wrote = o.wrote || err == nil
	return out, err
}

// inSync compares the digests, as a decision does.
func (o *edited) inSync(l *drift.Live) bool {
	return l.Managed && l.Hash == o.hash && (l.P == o.base.P || l.P == drift.Desired(o.desired, o.view) && !l.Extra)
}

// checkEdit fails if the digest contradicts the API server. It returns whether the edit is drift.
func (o *edited) checkEdit(at place, what string, after *unstructured.Unstructured) bool {
	o.t.Helper()
	l := o.view.Live(after)
	if o.inSync(l) {
		would, err := o.client.DryRunApply(o.t.Context(), o.target, l.UID, o.desired)
		if err != nil {
			o.t.Errorf("%s: it is in sync, and yet an apply is refused: %v", what, err)
			return false
		}
		must.Same(o.t, "", o.changedBy(after, would), what, "it is in sync, and yet an apply would change it")
		was, is := drift.Extras(o.live, o.desired, o.view.Exclusive), drift.Extras(after, o.desired, o.view.Exclusive)
		if fmt.Sprint(was) != fmt.Sprint(is) { // the API server may add some
			o.t.Errorf("%s: it is in sync, and yet it has more keys than it may: %v, at first %v", what, is, was)
		}
		must.Same(o.t, "", o.lost(after), what, "it is in sync, and yet our values are others")
		return false
	}
	repaired, err := o.client.Apply(o.t.Context(), o.target, l.UID, o.desired)
	if err != nil || setOnce[o.kind.gvk.Kind+at.String()] != "" {
		return true // a change that cannot be undone, such as one of an immutable field
	}
	must.Same(o.t, "", o.lost(repaired), what, "it is drift, and an apply does not bring our values back")
	return true
}

// differs returns the places that differ, "" if there are none; it skips places for which ignore returns true.
func differs(was, is any, at []any, ignore func(at []any) bool) string {
	if reflect.DeepEqual(was, is) || ignore(at) {
		return ""
	}
	out := ""
	a, aMap := was.(map[string]any)
	b, bMap := is.(map[string]any)
	if aMap && bMap {
		for _, key := range sortedKeys(a) {
			out += differs(a[key], b[key], append(slices.Clone(at), key), ignore)
		}
		for _, key := range sortedKeys(b) {
			if _, known := a[key]; !known {
				out += differs(nil, b[key], append(slices.Clone(at), key), ignore)
			}
		}
		return out
	}
	before, aList := was.([]any)
	now, bList := is.([]any)
	if aList && bList && len(before) == len(now) {
		for i := range before {
			out += differs(before[i], now[i], append(slices.Clone(at), i), ignore)
		}
		return out
	}
	return fmt.Sprintf("%s was %s, is %s\n", place{path: at}, short(was), short(is))
}

// unrecorded reports whether a place is an empty list whose ownership the API server does not record: a merged list is
// recorded only by its items.
func (o *edited) unrecorded(at []any) bool {
	want, _ := valueIn(o.desired, at)
	list, ok := want.([]any)
	if !ok || len(list) > 0 {
		return false
	}
	projection, _ := drift.Project(o.live, manager)
	_, recorded := valueIn(projection, at)
	return !recorded
}

// changedBy returns what a write changes, apart from what every write or a controller changes. The API server
// increments the generation for some applies that change nothing.
func (o *edited) changedBy(was, is *unstructured.Unstructured) string {
	stored := func(u *unstructured.Unstructured) map[string]any {
		out := u.DeepCopy()
		out.SetManagedFields(nil)
		out.SetResourceVersion("")
		out.SetGeneration(0)
		delete(out.Object, "status")
		return out.Object
	}
	return differs(stored(was), stored(is), nil, o.unrecorded)
}

// lost compares the values that we owned at first with the current ones. Others may add keys to an empty map of ours.
func (o *edited) lost(now *unstructured.Unstructured) string {
	values := func(u *unstructured.Unstructured) map[string]any {
		u = u.DeepCopy()
		u.Object["metadata"].(map[string]any)["managedFields"] = o.live.Object["metadata"].(map[string]any)["managedFields"]
		projection, _ := drift.Project(u, manager)
		return projection
	}
	return differs(values(o.live), values(now), nil, func(at []any) bool {
		want, _ := valueIn(o.desired, at)
		m, ok := want.(map[string]any)
		return ok && len(m) == 0 || len(at) > 0 && at[len(at)-1] == "timeAdded" // the API server sets it when a taint changes
	})
}
