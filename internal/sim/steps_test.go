package sim_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

var (
	configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	leases     = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}
	getOptions = metav1.GetOptions{}
)

// of returns a client for objects like u.
func (w *world) of(u *unstructured.Unstructured) dynamic.ResourceInterface {
	return w.resource(u.GroupVersionKind(), u.GetNamespace())
}

func (w *world) resource(gvk schema.GroupVersionKind, namespace string) dynamic.ResourceInterface {
	k, err := w.Setup.source(w.t).Kind(gvk)
	if err != nil {
		w.t.Fatal(err)
	}
	if !k.Namespaced {
		namespace = ""
	}
	return w.users.Resource(k.GVR).Namespace(namespace)
}

// merge sends a merge patch, as a user does.
func (w *world) merge(ctx context.Context, u *unstructured.Unstructured, patch string, subresources ...string) error {
	o := metav1.PatchOptions{FieldManager: "somebody"}
	_, err := w.of(u).Patch(ctx, u.GetName(), types.MergePatchType, []byte(patch), o, subresources...)
	return err
}

// apply creates or changes an upstream.
func (w *world) apply(ctx context.Context, u *unstructured.Unstructured) error {
	text, err := json.Marshal(u)
	if err != nil {
		return err
	}
	force := true
	_, err = w.of(u).Patch(ctx, u.GetName(), types.ApplyPatchType, text, metav1.PatchOptions{FieldManager: "user", Force: &force})
	return err
}

// upstream returns one of the upstreams of a schedule.
func (w *world) upstream(which, value int, spec map[string]any) *unstructured.Unstructured {
	if w.Setup.Example != "" {
		return w.Setup.upstreamOfExample(w.t, which, value)
	}
	return w.widget(string(rune('a'+which%2)), value, spec)
}

// widget returns an upstream that uses every feature of the setup.
func (w *world) widget(name string, value int, spec map[string]any) *unstructured.Unstructured {
	if spec == nil {
		spec = map[string]any{}
	}
	spec["data"] = map[string]any{"key": fmt.Sprint("v", value%3)}
	spec["exposed"] = value >= 6
	if w.Setup.Several {
		spec["items"] = [][]any{{""}, {"", "-b"}, {"-c", "", "-b"}, {"-b"}}[value%4]
	}
	if w.Setup.Elsewhere && value%4 == 3 {
		spec["namespace"] = "other"
	}
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "test.example.com/v1", "kind": w.Setup.kind(), "spec": spec}}
	u.SetName(name)
	if !w.Setup.Cluster {
		u.SetNamespace("ns")
	}
	u.SetLabels(map[string]string{"enabled": "yes"})
	return u
}

// step carries out a step.
func (w *world) step(ctx context.Context, s Step) {
	wait(milliseconds(s.After))
	w.noteForgotten(ctx)
	replica := w.replicas[s.Which%len(w.replicas)]
	switch s.Do {
	case "kill", "stop", "cut watches":
		w.logf("%s: %s", replica.name, s.Do)
		if p := replica.alive(); p != nil {
			map[string]func(){"kill": p.kill, "stop": p.stop, "cut watches": p.cutWatches}[s.Do]()
		}
	case "partition":
		replica.partition(ctx, []time.Duration{5 * time.Second, 25 * time.Second, time.Minute}[s.Value%3])
	case "compact":
		w.logf("the API server forgets what has happened")
		w.cluster.Compact()
	case "reload":
		w.reloadAll(ctx, s.Value)
	case "orphan":
		w.orphan(ctx, fmt.Sprint("orphaned-", w.Seed, "-", s.Which, "-", s.Value))
	default:
		did, err := w.act(ctx, s)
		if did != "" {
			w.logf("somebody %s: %v", did, err)
		}
	}
}

// act changes objects.
func (w *world) act(ctx context.Context, s Step) (did string, err error) {
	u := w.upstream(s.Which, s.Value, nil)
	name := u.GetKind() + " " + u.GetName()
	switch s.Do {
	case "apply":
		return fmt.Sprintf("applies %s %v", name, u.Object["spec"]), w.apply(ctx, u)
	case "rename":
		if w.Setup.Example == "" {
			u = w.upstream(s.Which, s.Value, map[string]any{"name": fmt.Sprint(u.GetName(), s.Value%2)})
		}
		return fmt.Sprintf("applies %s %v", name, u.Object["spec"]), w.apply(ctx, u)
	case "delete":
		policy := []metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationForeground}[s.Value%2]
		return "deletes " + name + ", " + string(policy), w.of(u).Delete(ctx, u.GetName(), metav1.DeleteOptions{PropagationPolicy: &policy})
	case "replace":
		if err := w.of(u).Delete(ctx, u.GetName(), metav1.DeleteOptions{}); err != nil {
			return "deletes " + name, err
		}
		return "deletes " + name + " and makes it again", w.apply(ctx, u)
	case "annotate":
		return "annotates " + name, w.merge(ctx, u, fmt.Sprintf(`{"metadata":{"annotations":{"theirs":"%d"}}}`, s.Value))
	case "request":
		return "asks for " + name, w.merge(ctx, u, fmt.Sprintf(`{"metadata":{"annotations":{"sim.example.com/reconcile":"%d"}}}`, s.Value))
	case "pause":
		return "pauses " + name, w.merge(ctx, u, `{"metadata":{"annotations":{"sim.example.com/paused":"true"}}}`)
	case "strip status":
		if w.Setup.Before || w.Setup.Example != "" || slices.ContainsFunc(w.Steps, func(s Step) bool { return s.Do == "strip labels" }) {
			return "", nil // an object that neither the status nor the watch has is unknown, and so is a finished deletion.before
		}
		return "empties the status of " + name, w.merge(ctx, u, `{"status":null}`, "status")
	case "input":
		if w.Setup.Listed && s.Which == 0 {
			return w.changeMember(ctx, s.Value)
		}
		return w.changeInput(ctx, s.Value)
	case "delete namespace":
		if !w.Setup.Terminating {
			return "", nil
		}
		return "deletes the namespace", w.users.Resource(namespaces).Delete(ctx, "ns", metav1.DeleteOptions{})
	case "squat":
		return w.createForeign(ctx, "ns", fmt.Sprint(u.GetName(), s.Value%2))
	}
	return w.disturbDownstream(ctx, s)
}

// configMap returns a ConfigMap in the namespace of most objects; data may be nil.
func configMap(name string, data map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
	u.SetNamespace("ns")
	u.SetName(name)
	if data != nil {
		u.Object["data"] = data
	}
	return u
}

// changeInput changes an input of several upstreams.
func (w *world) changeInput(ctx context.Context, value int) (did string, err error) {
	if w.Setup.Input == "" {
		return "", nil
	}
	u := configMap("settings", map[string]any{"mode": fmt.Sprint(value)})
	if value%4 == 0 {
		return "deletes the settings", w.of(u).Delete(ctx, "settings", metav1.DeleteOptions{})
	}
	return fmt.Sprint("sets the settings to ", value), w.apply(ctx, u)
}

// changeMember changes an object that enters lists, leaves them, or changes in them.
func (w *world) changeMember(ctx context.Context, value int) (did string, err error) {
	u := configMap(fmt.Sprint("member-", value%3), map[string]any{"of": string(rune('a' + value%2)), "value": fmt.Sprint(value)})
	if value%4 == 0 {
		return "deletes " + u.GetName(), w.of(u).Delete(ctx, u.GetName(), metav1.DeleteOptions{})
	}
	if value%5 != 0 {
		u.SetLabels(map[string]string{"member": "yes"})
	}
	return fmt.Sprintf("applies %s %v", u.GetName(), u.Object["data"]), w.apply(ctx, u)
}

// isRecorded reports whether the status of an upstream records an object. One that was created without a response is
// known only by its labels until then.
func (w *world) isRecorded(ctx context.Context, u *unstructured.Unstructured) bool {
	for _, c := range w.pipelines() {
		for _, upstream := range w.list(ctx, c.Pipeline.Upstream.GVK) {
			if strings.Contains(fmt.Sprint(upstream.Object["status"]), string(u.GetUID())) {
				return true
			}
		}
	}
	return false
}

// disturbDownstream changes an object of the operator. It skips changes that a config handles differently: an object
// without its owner annotation belongs to nobody.
func (w *world) disturbDownstream(ctx context.Context, s Step) (did string, err error) {
	owned := w.ownedObjects(ctx)
	if w.Setup.Example == "" { // those of the selected upstream
		name := w.upstream(s.Which, 0, nil).GetName()
		owned = slices.DeleteFunc(owned, func(u *unstructured.Unstructured) bool { return !strings.HasPrefix(u.GetName(), name) })
	}
	if len(owned) == 0 {
		return "", nil
	}
	u := owned[s.Value%len(owned)]
	name := key(u)
	if s.Do == "hold" {
		return "holds " + name, w.hold(ctx, u)
	}
	w.edited[name] = true
	switch s.Do {
	case "delete object":
		if u.GetKind() == "Namespace" || u.GetKind() == "LimitRange" {
			return "", nil // what must be done before a deletion cannot be done in it any more, and who else would create it
		}
		return "deletes " + name, w.of(u).Delete(ctx, u.GetName(), metav1.DeleteOptions{})
	case "usurp":
		return w.replaceByForeign(ctx, u)
	case "strip labels":
		if (w.Setup.Example == "" || len(u.GetOwnerReferences()) == 0) && !w.isRecorded(ctx, u) {
			return "", nil
		}
		return "takes the labels off " + name, w.merge(ctx, u, `{"metadata":{"labels":null}}`)
	case "strip annotations":
		if len(u.GetOwnerReferences()) == 0 {
			return "", nil
		}
		return "takes the annotations off " + name, w.merge(ctx, u, `{"metadata":{"annotations":null}}`)
	case "edit":
		patch := `{"metadata":{"labels":{"theirs":"x"}}}`
		if _, ok := u.Object["data"]; ok {
			patch = []string{`{"data":{"key":"Zm9yZWlnbg=="}}`, `{"data":{"theirs":"eA=="}}`, `{"data":null}`}[s.Value%3]
		}
		return "writes to " + name + " " + patch, w.merge(ctx, u, patch)
	}
	panic("unknown step " + s.Do)
}

// replaceByForeign replaces an object by one of another owner, if none may be adopted.
func (w *world) replaceByForeign(ctx context.Context, u *unstructured.Unstructured) (did string, err error) {
	if w.Setup.Example != "" || w.Setup.Orphan || u.GetKind() != "ConfigMap" || w.foreign[key(u)] != nil {
		return "", nil
	}
	if err := w.of(u).Delete(ctx, u.GetName(), metav1.DeleteOptions{}); err != nil {
		return "deletes " + key(u), err
	}
	return w.createForeign(ctx, u.GetNamespace(), u.GetName())
}

// createForeign creates an object of another owner, if none may be adopted.
func (w *world) createForeign(ctx context.Context, namespace, name string) (did string, err error) {
	theirs := configMap(name, map[string]any{"theirs": "x"})
	theirs.SetNamespace(namespace)
	if w.Setup.Example != "" || w.Setup.Orphan || w.foreign[key(theirs)] != nil {
		return "", nil
	}
	made, err := w.of(theirs).Create(ctx, theirs, metav1.CreateOptions{})
	if err == nil {
		made.SetGroupVersionKind(theirs.GroupVersionKind())
		w.foreign[key(theirs)] = made
	}
	return "makes " + key(theirs), err
}

// removeForeign checks that the objects of others are unchanged, and deletes them.
func (w *world) removeForeign(ctx context.Context) {
	for _, u := range w.foreign {
		if ns, err := w.users.Resource(namespaces).Get(ctx, u.GetNamespace(), getOptions); err != nil || ns.GetDeletionTimestamp() != nil {
			continue // it is deleted with its namespace
		}
		have, err := w.of(u).Get(ctx, u.GetName(), getOptions)
		switch {
		case err != nil:
			w.problem("%s of somebody else is gone: %v", key(u), err)
		case have.GetUID() != u.GetUID() || have.GetResourceVersion() != u.GetResourceVersion():
			w.problem("%s of somebody else is another one: %v", key(u), have.Object)
		default:
			w.logf("somebody removes %s again: %v", key(u), w.of(u).Delete(ctx, u.GetName(), metav1.DeleteOptions{}))
		}
	}
}

// orphan creates an upstream and deletes it with --cascade=orphan, while a process runs.
func (w *world) orphan(ctx context.Context, name string) {
	if w.Setup.Example != "" || w.Setup.Input == "Wait" || w.Setup.Generated || w.variant.broken > 0 {
		return
	}
	settled := 20 * time.Second
	if len(w.replicas) > 1 {
		settled = 2 * time.Minute
	}
	before := w.setNoFaults(true)
	defer w.setNoFaults(before)
	w.reconnect()
	wait(settled)
	u := w.widget(name, 0, nil)
	err := w.apply(ctx, u)
	made := configMap(name, nil)
	for end := time.Now().Add(settled); !w.exists(ctx, made) && time.Now().Before(end); {
		wait(5 * time.Millisecond)
	}
	existed := w.exists(ctx, made) // otherwise there is nothing to keep yet
	r, _ := w.chance("orphan")
	wait(milliseconds(r.IntN(100))) // it may still be reconciling it
	policy := metav1.DeletePropagationOrphan
	if err == nil {
		err = w.of(u).Delete(ctx, name, metav1.DeleteOptions{PropagationPolicy: &policy})
	}
	w.logf("somebody deletes %s %s, Orphan: %v", u.GetKind(), name, err)
	w.orphaned[name] = existed && err == nil
	if r.IntN(2) == 0 {
		w.logf("the garbage collector at once: %v", w.cluster.CollectGarbage())
	}
	wait(settled)
}

// setNoFaults disables or enables faults; it returns the previous setting.
func (w *world) setNoFaults(noFaults bool) (before bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before, w.noFaults = w.noFaults, noFaults
	return before
}

func (w *world) reconnect() {
	for _, r := range w.replicas {
		r.reconnect()
	}
}

// unfinished returns the unfinished deletion.before objects, each with the patch and the subresource that finish it.
func (w *world) unfinished(ctx context.Context) map[*unstructured.Unstructured][]string {
	found := map[*unstructured.Unstructured][]string{}
	for _, c := range w.pipelines() {
		if c.Pipeline.Before == nil {
			continue
		}
		for _, u := range w.list(ctx, c.Pipeline.Before.Object.GVK()) {
			done, _, _ := unstructured.NestedString(u.Object, "data", "done")
			succeeded, _, _ := unstructured.NestedInt64(u.Object, "status", "succeeded")
			switch {
			case u.GetKind() == "Job" && succeeded == 0:
				found[u] = []string{`{"status":{"succeeded":1}}`, "status"}
			case isBefore(u) && done == "":
				found[u] = []string{`{"data":{"done":"yes"}}`}
			}
		}
	}
	return found
}

// finishBefore finishes the deletion.before objects.
func (w *world) finishBefore(ctx context.Context) {
	for u, patch := range w.unfinished(ctx) {
		w.logf("%s is done: %v", key(u), w.merge(ctx, u, patch[0], patch[1:]...))
	}
}

// reloadAll makes every replica load another config, each after a random delay.
func (w *world) reloadAll(ctx context.Context, value int) {
	w.mu.Lock()
	switch {
	case value < 4:
		w.variant.template = value
	case value == 4:
		w.variant.renamed = true
	case value < 7:
		w.variant.second = !w.variant.second
	case value < 10:
		w.variant.broken = value - 6
	default:
		w.variant.broken = 0
	}
	now := w.variant
	w.mu.Unlock()
	w.writeConfig()
	w.logf("the config is changed: %+v", now)
	for _, r := range w.replicas {
		c, _ := w.chance(r.name + " reloads")
		lag := milliseconds(c.IntN(4000))
		go func() {
			if pause(ctx, lag) == nil {
				r.reload(ctx)
			}
		}()
	}
}
