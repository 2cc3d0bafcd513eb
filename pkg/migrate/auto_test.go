package migrate_test

import (
	"fmt"
	"net/http"
	"path"
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
	"github.com/corollary-dev/corollary/internal/must"
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
	client := must.Get(dynamic.NewForConfig(a.faults.Wrap(a.counter.Wrap(testkit.Config(t))))).In(t)
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
func consider(t *testing.T, client dynamic.Interface, a *migrate.Auto, k *kind) error {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	u, err := client.Resource(definitions).Get(t.Context(), k.name(), metav1.GetOptions{})
	if err == nil {
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, crd)
	}
	if err != nil {
		t.Fatal(err)
	}
	err = a.Consider(t.Context(), migrate.Candidate{
		CRD: crd, Name: "things", FieldManager: "migrator", Converts: func(version string) bool { return version != "v1alpha1" },
	})
	a.Wait()
	return err
}

// look considers the kind, which must not fail.
func (a *automatic) look() {
	a.Helper()
	must.Do(a.T, consider(a.T, testkit.Dynamic(a.T), a.Auto, a.kind))
}

func (a *automatic) event() string {
	select {
	case text := <-a.events.Events:
		return text
	default:
		return ""
	}
}

// patched does something at each request to patch an object, which the API server refuses if it returns true.
func (a *automatic) patched(do func(name string) (refused bool)) *testkit.Fault {
	return a.faults.Answer(http.StatusForbidden, func(r *http.Request) bool {
		name := path.Base(r.URL.Path)
		return r.Method == http.MethodPatch && strings.HasPrefix(name, "t") && do(name)
	})
}

// The versions of a definition change; each step is migrated once, and nothing is asked at rest.
func TestAuto(t *testing.T) {
	bubble.Run(t, nil, func(t *testing.T) {
		k := define(t, "v1beta1!", "v1")
		k.fill(5)
		a := newAutomatic(t, k)
		if a.look(); a.counter.Total() > 0 {
			t.Errorf("nothing is to be done: %v", a.counter.Snapshot())
		}

		k.change("v1", "v1beta1", "v1!")
		k.wantStored("v1beta1", "v1")
		a.look()
		k.wantStored("v1")
		if text := a.event(); !strings.HasPrefix(text, "Normal Migrated 5 objects rewritten") {
			t.Errorf("the event is %q", text)
		}

		k.change("v1", "v1beta1-", "v1!") // its managers are to become managers of v1
		a.look()
		k.change("v1", "v1!")
		k.apply("v1", "somebody", "t0", "b", "y")

		a.counter.Reset()
		for range 3 {
			a.look()
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
		newAutomatic(t, k).look()
		a := newAutomatic(t, k)
		if a.look(); a.counter.Mutating() > 0 || a.event() != "" {
			t.Errorf("the first look: %v", a.counter.Snapshot())
		}
		a.counter.Reset()
		if a.look(); a.counter.Total() > 0 {
			t.Errorf("the second look: %v", a.counter.Snapshot())
		}
	})
}

// One object that the API server refuses does not stop the others; it is tried again later, not at once, and at once
// when the definition changes.
func TestAutoRefused(t *testing.T) {
	bubble.Run(t, nil, func(t *testing.T) {
		k := changed(t, 5)
		a := newAutomatic(t, k)
		fault := a.patched(func(name string) bool { return name == "t3" })
		for range 3 {
			a.look()
		}
		k.wantStored("v1beta1", "v1")
		if fault.Hits() == 0 || a.counter.Mutating() > 5 {
			t.Errorf("%d refusals, %v", fault.Hits(), a.counter.Snapshot())
		}
		if text := a.event(); !strings.HasPrefix(text, "Warning MigrationFailed 1 objects could not be rewritten") ||
			!strings.Contains(text, k.ns+"/t3") {
			t.Errorf("the event is %q", text)
		}
		fault.Off()
		k.change("v1", "v1beta1", "v1!", "v2")
		a.look()
		k.wantStored("v1")
	})
}

// What loses leadership writes nothing more, and what leads next goes on.
func TestAutoLosesLeadership(t *testing.T) {
	bubble.Run(t, nil, func(t *testing.T) {
		k := changed(t, 10)
		a, writes := newAutomatic(t, k), 0
		a.patched(func(string) bool {
			writes++
			a.leads.Store(writes < 4)
			return false
		})
		for _, reason := range []string{"while it writes", "as a standby"} {
			if a.look(); a.counter.Mutating() != 4 {
				t.Errorf("%s: %v", reason, a.counter.Snapshot())
			}
			k.wantStored("v1beta1", "v1")
		}
		newAutomatic(t, k).look()
		k.wantStored("v1")
	})
}

// A definition that changes during a migration ends it; the next look begins again.
func TestAutoNoticesAChange(t *testing.T) {
	bubble.Run(t, nil, func(t *testing.T) {
		k := changed(t, 3)
		a := newAutomatic(t, k)
		var changed atomic.Bool
		a.patched(func(string) bool {
			if !changed.Swap(true) {
				k.change("v1", "v1beta1", "v1!", "v2")
			}
			return false
		})
		a.look()
		k.wantStored("v1beta1", "v1")
		a.look()
		k.wantStored("v1")
	})
}

// A version that the conversion does not have cannot be migrated: nothing is written.
func TestAutoNeedsAConversion(t *testing.T) {
	bubble.Run(t, nil, func(t *testing.T) {
		k := define(t, "v1alpha1!", "v1")
		k.change("v1", "v1alpha1", "v1!")
		a := newAutomatic(t, k)
		err := consider(t, testkit.Dynamic(t), a.Auto, k)
		if err == nil || !strings.Contains(err.Error(), "v1alpha1, which the conversion does not have") || a.counter.Total() > 0 {
			t.Errorf("%v: %v", err, a.counter.Snapshot())
		}
	})
}

// While a migration runs, its metrics say how far it is; afterwards none is left.
func TestAutoMetrics(t *testing.T) {
	bubble.Run(t, nil, func(t *testing.T) {
		a, objects := newAutomatic(t, changed(t, 6)), 0
		a.patched(func(string) bool {
			objects++
			if got := fmt.Sprint(a.metric("corollary_migrated_objects_total")); objects == 5 && got != "map[Refused:1 Rewritten:3]" {
				t.Errorf("before the fifth object, the metric is %v", got)
			}
			if got := a.metric("corollary_migration_left_objects")[""]; objects == 5 && got != 2 {
				t.Errorf("before the fifth object, %v objects are left", got)
			}
			return objects == 2
		})
		a.look()
		must.Same(t, "map[Refused:1 Rewritten:5]", fmt.Sprint(a.metric("corollary_migrated_objects_total")), "at the end, the metric")
		if got := a.metric("corollary_migration_left_objects"); len(got) > 0 {
			t.Errorf("no migration runs, and objects are left: %v", got)
		}
	})
}

// metric returns the values of a metric for the definition, by result.
func (a *automatic) metric(name string) map[string]float64 {
	a.Helper()
	families := must.Get(metrics.Registry.Gather()).In(a.T)
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
