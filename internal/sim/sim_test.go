// Package sim_test runs the whole engine over a cluster in memory and a virtual clock, while everybody else does things at bad
// moments: users edit, delete and make again, others write over what the operator made, watches lag each by itself, requests and
// answers are lost, the process is killed and begun anew. In the end the cluster must be what the upstreams ask for, and nothing
// must be left to do.
package sim_test

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/corollary-dev/corollary/pkg/kinds"
)

var (
	seeds = flag.Uint64("seeds", 2, "how many schedules are run for each config")
	first = flag.Uint64("seed", 1, "the first one")
)

var (
	widgets    = schema.GroupVersionResource{Group: "test.example.com", Version: "v1", Resource: "widgets"}
	configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
)

const operator = `
apiVersion: corollary.dev/v1alpha1
kind: Operator
metadata: {name: sim}
watch: {apiVersion: test.example.com/v1, kind: WidgetWATCH}
downstreams:
  - name: config
    apiVersion: v1
    kind: ConfigMap
    template: |
      metadata:
        name: {{ .spec.name | default .metadata.name }}
      data: {{ .spec.data }}
conventions:
  fieldManager: sim
  labels: {sim.example.com/managed: "yes"}
  hash: {annotation: sim.example.com/hash}
  owner: {OWNERannotation: sim.example.com/owner}
  finalizer: sim.example.com/cleanup
status:
  conditions: {ready: Ready, valid: Valid, reconciling: Reconciling, stalled: Stalled}
  downstreams: .status.downstreams
events: None
resyncPeriod: 10m
retry: {minDelay: 1s, maxDelay: 10s}
`

const drain = `deletion:
  before:
    apiVersion: v1
    kind: ConfigMap
    template: |
      metadata: {name: "{{ .metadata.name }}-drain"}
      data: {for: "{{ .metadata.name }}"}
    doneWhen: downstream.?data.?done.orValue("") == "yes"
`

// configs are the operators that are simulated, by what is special about them.
var configs = map[string]string{
	"references":  special("", "", ""),
	"annotations": special("reference: false, ", "", ""),
	"wait":        special("", "", "deletion: {wait: true}\n"),
	"selected":    special("", `, labelSelector: {matchLabels: {enabled: "yes"}}`, ""),
	"before":      special("", "", drain),
	"guard":       special("", "", "guard: {maxDeleted: 100%}\n"),
}

func special(owner, watch, more string) string {
	return strings.NewReplacer("OWNER", owner, "WATCH", watch).Replace(operator) + more
}

// What fails by a seed fails by it again: go test ./internal/sim -run 'TestSimulation/CONFIG' -seed N -seeds 1.
func TestSimulation(t *testing.T) {
	definitions, err := kinds.Definitions("../../pkg/engine/testdata/crds/widgets.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Sorted(maps.Keys(configs)) {
		t.Run(name, func(t *testing.T) {
			for seed := *first; seed < *first+*seeds; seed++ {
				synctest.Test(t, func(t *testing.T) { simulate(t, seed, definitions, configs[name]) })
				if t.Failed() {
					return
				}
			}
		})
	}
}

func simulate(t *testing.T, seed uint64, definitions []*unstructured.Unstructured, conf string) {
	w := newWorld(t, seed, definitions, conf)
	defer func() {
		if t.Failed() {
			t.Logf("-seed %d:\n%s", seed, strings.Join(w.trace, "\n"))
		}
	}()
	namespace := map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "ns"}}
	if _, err := w.cluster.Put(&unstructured.Unstructured{Object: namespace}); err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	defer end()
	go w.collect(ctx)
	go w.drain(ctx)
	w.begin()
	for range 14 {
		w.act(ctx)
	}
	w.mu.Lock()
	w.chaos = false
	w.mu.Unlock()
	w.tell("from here on nothing fails and nobody acts")
	wait(3 * time.Minute)
	w.check(ctx)
	before := w.counted()
	wait(45 * time.Minute)
	if n := w.counted() - before; n > 0 {
		t.Errorf("%d requests at rest", n)
	}
	end()
	w.kill()
}

func (w *world) counted() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.requests
}

// collect is the garbage collector, which comes by now and then.
func (w *world) collect(ctx context.Context) {
	for pause(ctx, time.Duration(w.chance("collector").IntN(3000))*time.Millisecond) == nil {
		for _, did := range w.cluster.CollectGarbage() {
			w.tell("collector: %s", did)
		}
	}
}

// drain does what deletion.before asks for.
func (w *world) drain(ctx context.Context) {
	for pause(ctx, time.Duration(w.chance("drain").IntN(5000))*time.Millisecond) == nil {
		list, err := w.downstreams().List(ctx, metav1.ListOptions{})
		if err != nil {
			continue // the simulation ends
		}
		for _, u := range list.Items {
			if strings.HasSuffix(u.GetName(), "-drain") {
				err := w.merge(ctx, w.downstreams(), u.GetName(), `{"data":{"done":"yes"}}`)
				w.tell("%s is drained: %v", u.GetName(), err)
			}
		}
	}
}

func (w *world) upstreams() dynamic.ResourceInterface {
	return w.users.Resource(widgets).Namespace("ns")
}

func (w *world) downstreams() dynamic.ResourceInterface {
	return w.users.Resource(configMaps).Namespace("ns")
}

// merge is somebody's write.
func (w *world) merge(ctx context.Context, of dynamic.ResourceInterface, name, patch string) error {
	_, err := of.Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "somebody"})
	return err
}

// apply makes or changes an upstream.
func (w *world) apply(ctx context.Context, name, spec string) error {
	text := fmt.Sprintf(`{"apiVersion":"test.example.com/v1","kind":"Widget","metadata":{"name":%q,"labels":{"enabled":"yes"}},"spec":%s}`, name, spec)
	force := true
	_, err := w.upstreams().Patch(ctx, name, types.ApplyPatchType, []byte(text), metav1.PatchOptions{FieldManager: "user", Force: &force})
	return err
}

// act has somebody do something, at once or after a while. What a config answers for in another way is left out: an object
// that has lost its owner annotation is nobody's, and an upstream that is found without its label is left over.
func (w *world) act(ctx context.Context) {
	r := w.chance("somebody")
	longest := 200
	if r.IntN(3) == 0 {
		longest = 9000
	}
	wait(time.Duration(r.IntN(longest)) * time.Millisecond)
	name, did, err := string(rune('a'+r.IntN(2))), "", error(nil)
	switch r.IntN(16) {
	case 0, 1, 2, 3:
		spec := fmt.Sprintf(`{"data":{"key":"v%d"}}`, r.IntN(3))
		did, err = "applied Widget "+name+" "+spec, w.apply(ctx, name, spec)
	case 4:
		spec := fmt.Sprintf(`{"name":"%s%d","data":{"key":"v%d"}}`, name, r.IntN(2), r.IntN(3))
		did, err = "applied Widget "+name+" "+spec, w.apply(ctx, name, spec)
	case 5, 6:
		policy := []metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationForeground}[r.IntN(2)]
		did, err = "deleted Widget "+name+", "+string(policy), w.upstreams().Delete(ctx, name, metav1.DeleteOptions{PropagationPolicy: &policy})
	case 7:
		did, err = "deleted Widget "+name+" and made it again", w.upstreams().Delete(ctx, name, metav1.DeleteOptions{})
		if failed := w.apply(ctx, name, `{"data":{"key":"again"}}`); failed != nil {
			err = failed
		}
	case 8:
		did, err = "wrote ConfigMap "+name, w.merge(ctx, w.downstreams(), name, `{"data":{"key":"foreign"}}`)
	case 9:
		did, err = "took the labels off ConfigMap "+name, w.merge(ctx, w.downstreams(), name, `{"metadata":{"labels":null}}`)
	case 10:
		if !strings.Contains(w.config, "reference: false") {
			did, err = "took the annotations off ConfigMap "+name, w.merge(ctx, w.downstreams(), name, `{"metadata":{"annotations":null}}`)
		}
	case 11:
		did, err = "deleted ConfigMap "+name, w.downstreams().Delete(ctx, name, metav1.DeleteOptions{})
	case 12, 13:
		w.kill()
		wait(time.Duration(r.IntN(3000)) * time.Millisecond)
		w.begin()
	case 14:
		did = "let the API server forget what has happened"
		w.cluster.Compact()
	case 15:
		did, err = w.orphan(ctx, fmt.Sprint("orphaned-", r.IntN(1000)))
	}
	if did != "" {
		w.tell("somebody %s: %v", did, err)
	}
}

// orphan makes an upstream and deletes it with --cascade=orphan, while a process is there to see it.
func (w *world) orphan(ctx context.Context, name string) (did string, err error) {
	const settled = 20 * time.Second
	wait(settled)
	if err := w.apply(ctx, name, `{"data":{"key":"stays"}}`); err != nil {
		return "applied Widget " + name, err
	}
	wait(settled)
	policy := metav1.DeletePropagationOrphan
	err = w.upstreams().Delete(ctx, name, metav1.DeleteOptions{PropagationPolicy: &policy})
	w.tell("somebody deleted Widget %s, Orphan", name)
	w.orphaned[name] = err == nil
	wait(settled)
	return "has orphaned ConfigMap " + name, err
}

// check holds the cluster to what the upstreams ask for.
func (w *world) check(ctx context.Context) {
	upstreams, err := w.upstreams().List(ctx, metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	want := map[string]string{} // what a ConfigMap holds, and the uid of its upstream
	for _, u := range upstreams.Items {
		if u.GetDeletionTimestamp() != nil {
			w.t.Errorf("Widget %s is still being deleted, with finalizers %v", u.GetName(), u.GetFinalizers())
		}
		name, _, _ := unstructured.NestedString(u.Object, "spec", "name")
		if name == "" {
			name = u.GetName()
		}
		data, _, _ := unstructured.NestedMap(u.Object, "spec", "data")
		want[name] = fmt.Sprint(data, " ", u.GetUID())
	}
	for name := range w.orphaned {
		want[name] = "map[key:stays] "
	}
	downstreams, err := w.downstreams().List(ctx, metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	have := map[string]string{}
	for _, u := range downstreams.Items {
		data, _, _ := unstructured.NestedMap(u.Object, "data")
		owner := u.GetAnnotations()["sim.example.com/owner"]
		owner = owner[strings.LastIndex(owner, "/")+1:]
		for _, ref := range u.GetOwnerReferences() {
			owner = string(ref.UID)
		}
		have[u.GetName()] = fmt.Sprint(data, " ", owner)
	}
	if !maps.Equal(want, have) {
		w.t.Errorf("the cluster has\n%s\nand the upstreams ask for\n%s", lines(have), lines(want))
	}
}

func lines(m map[string]string) string {
	var list []string
	for _, key := range slices.Sorted(maps.Keys(m)) {
		list = append(list, key+": "+m[key])
	}
	return strings.Join(list, "\n")
}
