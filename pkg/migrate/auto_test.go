package migrate_test

import (
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-logr/logr/testr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/corollary-dev/corollary/internal/bubble"
	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/migrate"
)

// automatic is an Auto of a test, with its events and requests.
type automatic struct {
	*migrate.Auto
	*testing.T
	kind    *kind
	counter *testkit.Counter
	faults  *testkit.Faults
	events  *events.FakeRecorder
	leads   atomic.Bool
}

func newAutomatic(t *testing.T, k *kind) *automatic {
	a := &automatic{T: t, kind: k, counter: testkit.NewCounter(), faults: testkit.NewFaults(), events: events.NewFakeRecorder(100)}
	client, err := dynamic.NewForConfig(a.faults.Wrap(a.counter.Wrap(testkit.Config(t))))
	if err != nil {
		t.Fatal(err)
	}
	a.leads.Store(true)
	a.Auto = &migrate.Auto{
		Client:   client,
		Leads:    a.leads.Load,
		Recorder: func(string) events.EventRecorder { return a.events },
		Log:      testr.New(t),
	}
	return a
}

// consider does what the publisher does at each look, and waits for what that begins.
func (a *automatic) consider() error {
	a.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	u := testkit.Get(a.T, definitions, "", a.kind.name())
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, crd); err != nil {
		a.Fatal(err)
	}
	err := a.Consider(a.Context(), migrate.Candidate{
		CRD: crd, Name: "widgets", FieldManager: "migrator", Converts: func(version string) bool { return version != "v1alpha1" },
	})
	a.Wait()
	return err
}

func (a *automatic) event() string {
	select {
	case text := <-a.events.Events:
		return text
	default:
		return ""
	}
}

func (a *automatic) stored(want ...string) {
	a.Helper()
	if have := a.kind.stored(); !slices.Equal(have, want) {
		a.Errorf("status.storedVersions is %v, not %v", have, want)
	}
}

func (k *kind) fill(n int) {
	k.t.Helper()
	for i := range n {
		if err := k.apply("v1beta1", "somebody", fmt.Sprint("t", i), "a", "x"); err != nil {
			k.t.Fatal(err)
		}
	}
}

// The versions of a definition change; each step is migrated once, and nothing is asked at rest.
func TestAuto(t *testing.T) {
	bubble.Run(t, nil, func(t *testing.T) {
		k := define(t, "v1beta1!", "v1")
		k.fill(5)
		a := newAutomatic(t, k)
		if err := a.consider(); err != nil || a.counter.Total() > 0 {
			t.Errorf("nothing is to be done: %v, %v", err, a.counter.Snapshot())
		}

		k.change("v1", "v1beta1", "v1!")
		a.stored("v1beta1", "v1")
		if err := a.consider(); err != nil {
			t.Fatal(err)
		}
		a.stored("v1")
		if text := a.event(); !strings.HasPrefix(text, "Normal Migrated 5 objects rewritten") {
			t.Errorf("the event is %q", text)
		}

		k.change("v1", "v1beta1-", "v1!") // its managers are to become managers of v1
		if err := a.consider(); err != nil {
			t.Fatal(err)
		}
		k.change("v1", "v1!")
		if err := k.apply("v1", "somebody", "t0", "b", "y"); err != nil {
			t.Errorf("who has applied in the version that is gone cannot go on: %v", err)
		}

		a.counter.Reset()
		for range 3 {
			if err := a.consider(); err != nil {
				t.Fatal(err)
			}
		}
		if n := a.counter.Total(); n > 0 {
			t.Errorf("at rest there are %v", a.counter.Snapshot())
		}
	})
}

// While a version is not served any more, a restart looks for managers of it, and rewrites nothing.
func TestAutoRestarts(t *testing.T) {
	bubble.Run(t, nil, func(t *testing.T) {
		k := define(t, "v1beta1!", "v1")
		k.fill(5)
		k.change("v1", "v1beta1-", "v1!")
		if err := newAutomatic(t, k).consider(); err != nil {
			t.Fatal(err)
		}
		a := newAutomatic(t, k)
		if err := a.consider(); err != nil || a.counter.Mutating() > 0 || a.event() != "" {
			t.Errorf("%v: %v", err, a.counter.Snapshot())
		}
		a.counter.Reset()
		if err := a.consider(); err != nil || a.counter.Total() > 0 {
			t.Errorf("the second look: %v: %v", err, a.counter.Snapshot())
		}
	})
}

// One object that the API server refuses does not stop the others; it is tried again later, not at once, and at once when the
// definition changes.
func TestAutoRefused(t *testing.T) {
	bubble.Run(t, nil, func(t *testing.T) {
		k := define(t, "v1beta1!", "v1")
		k.fill(5)
		a := newAutomatic(t, k)
		fault := a.faults.Answer(http.StatusForbidden, func(r *http.Request) bool {
			return r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, "/t3")
		})
		k.change("v1", "v1beta1", "v1!")
		for range 3 {
			if err := a.consider(); err != nil {
				t.Fatal(err)
			}
		}
		a.stored("v1beta1", "v1")
		if n := len(fault.Times()); n == 0 || a.counter.Mutating() > 5 {
			t.Errorf("%d refusals, %v", n, a.counter.Snapshot())
		}
		if text := a.event(); !strings.HasPrefix(text, "Warning MigrationFailed 1 objects could not be rewritten") ||
			!strings.Contains(text, k.ns+"/t3") {
			t.Errorf("the event is %q", text)
		}
		fault.Off()
		k.change("v1", "v1beta1", "v1!", "v2")
		if err := a.consider(); err != nil {
			t.Fatal(err)
		}
		a.stored("v1")
	})
}

// What loses leadership writes nothing more, and what leads next goes on.
func TestAutoLosesLeadership(t *testing.T) {
	bubble.Run(t, nil, func(t *testing.T) {
		k := define(t, "v1beta1!", "v1")
		k.fill(10)
		k.change("v1", "v1beta1", "v1!")
		a := newAutomatic(t, k)
		writes := 0
		a.faults.Answer(http.StatusForbidden, func(r *http.Request) bool {
			if r.Method == http.MethodPatch {
				writes++
				a.leads.Store(writes < 4)
			}
			return false
		})
		if err := a.consider(); err != nil || a.counter.Mutating() != 4 {
			t.Errorf("%v: %v", err, a.counter.Snapshot())
		}
		a.stored("v1beta1", "v1")
		if err := a.consider(); err != nil || a.counter.Mutating() != 4 {
			t.Errorf("a standby: %v: %v", err, a.counter.Snapshot())
		}
		if err := newAutomatic(t, k).consider(); err != nil {
			t.Fatal(err)
		}
		a.stored("v1")
	})
}

// A definition that changes during a migration ends it; the next look begins again.
func TestAutoNoticesAChange(t *testing.T) {
	bubble.Run(t, nil, func(t *testing.T) {
		k := define(t, "v1beta1!", "v1")
		k.fill(3)
		k.change("v1", "v1beta1", "v1!")
		a := newAutomatic(t, k)
		var changed atomic.Bool
		a.faults.Answer(http.StatusForbidden, func(r *http.Request) bool {
			if r.Method == http.MethodPatch && !changed.Swap(true) {
				k.change("v1", "v1beta1", "v1!", "v2")
			}
			return false
		})
		if err := a.consider(); err != nil {
			t.Fatal(err)
		}
		a.stored("v1beta1", "v1")
		if err := a.consider(); err != nil {
			t.Fatal(err)
		}
		a.stored("v1")
	})
}

// A version that the conversion does not have cannot be migrated: nothing is written.
func TestAutoNeedsAConversion(t *testing.T) {
	bubble.Run(t, nil, func(t *testing.T) {
		k := define(t, "v1alpha1!", "v1")
		k.change("v1", "v1alpha1", "v1!")
		a := newAutomatic(t, k)
		if err := a.consider(); err == nil || !strings.Contains(err.Error(), "v1alpha1, which the conversion does not have") ||
			a.counter.Total() > 0 {
			t.Errorf("%v: %v", err, a.counter.Snapshot())
		}
	})
}

// A field manager that has applied fields of the objects would remove them by an empty apply: it is refused.
func TestManagerOfTheObjects(t *testing.T) {
	bubble.Run(t, nil, func(t *testing.T) {
		k := define(t, "v1beta1!", "v1")
		k.fill(2)
		k.change("v1", "v1beta1", "v1!")
		m := k.migration(testkit.Dynamic(t))
		m.FieldManager = "somebody"
		p, err := m.Plan(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		r, err := m.Run(t.Context(), p)
		if err != nil || len(r.Refusals) != 2 || !strings.Contains(r.Refusals[0].Err.Error(), "choose a field manager of its own") {
			t.Errorf("%+v: %v", r, err)
		}
		u, err := testkit.Dynamic(t).Resource(k.resource("v1")).Namespace(k.ns).Get(t.Context(), "t0", metav1.GetOptions{})
		if err != nil || u.Object["spec"] == nil {
			t.Errorf("its fields are gone: %v, %v", u, err)
		}
	})
}

// While a migration runs, its metrics say how far it is; afterwards none is left.
func TestAutoMetrics(t *testing.T) {
	bubble.Run(t, nil, func(t *testing.T) {
		k := define(t, "v1beta1!", "v1")
		k.fill(6)
		k.change("v1", "v1beta1", "v1!")
		a := newAutomatic(t, k)
		objects := 0
		a.faults.Answer(http.StatusForbidden, func(r *http.Request) bool {
			if r.Method != http.MethodPatch || !strings.HasPrefix(path.Base(r.URL.Path), "t") {
				return false
			}
			objects++
			if got := fmt.Sprint(a.metric("corollary_migrated_objects_total")); objects == 5 && got != "map[Refused:1 Rewritten:3]" {
				t.Errorf("before the fifth object, the metric is %v", got)
			}
			if got := a.metric("corollary_migration_left_objects")[""]; objects == 5 && got != 2 {
				t.Errorf("before the fifth object, %v objects are left", got)
			}
			return objects == 2
		})
		if err := a.consider(); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(a.metric("corollary_migrated_objects_total")); got != "map[Refused:1 Rewritten:5]" {
			t.Errorf("at the end, the metric is %v", got)
		}
		if got := a.metric("corollary_migration_left_objects"); len(got) > 0 {
			t.Errorf("no migration runs, and objects are left: %v", got)
		}
	})
}

// metric returns the values of a metric for the definition, by result.
func (a *automatic) metric(name string) map[string]float64 {
	a.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		a.Fatal(err)
	}
	values := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			if family.GetName() == name && labels["crd"] == a.kind.name() {
				values[labels["result"]] = m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	return values
}
