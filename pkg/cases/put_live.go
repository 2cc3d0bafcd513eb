package cases

import (
	"context"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/desired"
	"github.com/corollary-dev/corollary/pkg/spelling"
	"github.com/corollary-dev/corollary/pkg/status"
)

// defaultManager is the field manager of changes without by.
const defaultManager = "somebody"

// putLive stores an object of a case in the cluster.
func (w *caseRun) putLive(ctx context.Context, e liveEntry) error {
	if e.object != nil {
		u := unstructured.Unstructured{Object: e.object}
		if u.GetKind() == "" || u.GetAPIVersion() == "" || u.GetName() == "" {
			return errors.New("object needs apiVersion, kind and metadata.name")
		}
		return w.put(e.object)
	}
	d, made, err := w.applyDownstream(ctx, e)
	if err != nil {
		return err
	}
	if err := w.record(*made); err != nil {
		return err
	}
	at := w.resource(&d.Kind, made.Namespace)
	u, err := at.Get(ctx, made.ObjectName, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if have := w.recordedUID(*made); have != "" && have != u.GetUID() {
		u.SetUID(have)
		if u, err = w.cluster.Put(u); err != nil {
			return err
		}
	}
	if err := w.change(ctx, at, u, e); err != nil {
		return fmt.Errorf("changes: %w", err)
	}
	w.transport.immutable[pathOf(&d.Kind, operator.Ref{Namespace: made.Namespace, Name: made.ObjectName})] = e.immutable
	return nil
}

// applyDownstream makes the reconciler create the applied object of an entry. It returns its downstream and what the
// status records of it.
func (w *caseRun) applyDownstream(ctx context.Context, e liveEntry) (*desired.Downstream, *status.Recorded, error) {
	then, err := w.putUpstream(patched(w.upstream, e.upstream))
	if err != nil {
		return nil, nil, err
	}
	if e.applied == operator.BeforeName && w.Pipeline.Before != nil {
		made, err := w.applyBefore(ctx, then)
		return w.Pipeline.Before.Object, made, err
	}
	i := slices.IndexFunc(w.Pipeline.Downstreams, func(d *desired.Downstream) bool { return d.Name == e.applied })
	if i < 0 {
		return nil, nil, fmt.Errorf("applied is %q: %s", e.applied, w.downstreamNames(e.applied))
	}
	desired, k, made, err := w.reconciler.CreateDownstream(ctx, then, i, e.objectName)
	if err == nil && k < 0 {
		return nil, nil, fmt.Errorf("%s has no object of the name %q at that time: set objectName", e.applied, e.objectName)
	}
	object := &desired.Objects[max(k, 0)]
	switch {
	case err != nil:
		return nil, nil, fmt.Errorf("applying %s: %w", e.applied, err)
	case len(desired.Invalid) > 0:
		return nil, nil, fmt.Errorf("the upstream was invalid at that time, so nothing was applied: %s", desired.Invalid[0])
	case object.Err != nil:
		return nil, nil, fmt.Errorf("nothing could be applied at that time: %w", w.Located(i, object.Err))
	case !object.Wanted:
		return nil, nil, fmt.Errorf(
			"%s was not desired at that time, because when was false: set the fields that were different under upstream",
			e.applied)
	}
	if made == nil { // the status has no path for it
		made = &status.Recorded{Namespace: object.Target.Namespace, ObjectName: object.Target.Name}
	}
	return w.Pipeline.Downstreams[i], made, nil
}

// applyBefore creates the deletion.before object.
func (w *caseRun) applyBefore(ctx context.Context, then *unstructured.Unstructured) (*status.Recorded, error) {
	p := w.Pipeline
	desired := p.DesiredBefore(then, w.addInputs(ctx, then))
	if desired.Err != nil {
		return nil, fmt.Errorf("nothing could be created at that time: %w", desired.Err)
	}
	at := desired.Target
	document := unstructured.Unstructured{Object: desired.Document}
	u, err := w.resource(&p.Before.Object.Kind, at.Namespace).Apply(ctx, at.Name, &document,
		metav1.ApplyOptions{FieldManager: p.Config.Conventions.FieldManager, Force: true})
	if err != nil {
		return nil, fmt.Errorf("applying %s: %w", operator.BeforeName, err)
	}
	return &status.Recorded{Name: operator.BeforeName, APIVersion: p.Before.Config.APIVersion, Kind: p.Before.Config.Kind,
		Namespace: at.Namespace, ObjectName: at.Name, UID: u.GetUID(), State: string(operator.StateBeforeRunning)}, nil
}

// addInputs returns what is read of an upstream's inputs.
func (w *caseRun) addInputs(ctx context.Context, upstream *unstructured.Unstructured) desired.Inputs {
	refs := w.Pipeline.InputRefs(ctx, upstream)
	return w.Pipeline.InputsAt(refs, desired.WholeObjects(func(s *desired.InputSource) []*unstructured.Unstructured {
		return w.cluster.Objects(s.Kind.GVR)
	}))
}

func (w *caseRun) downstreamNames(word string) string {
	var names []string
	for _, d := range w.Pipeline.Downstreams {
		names = append(names, d.Name)
	}
	if name := spelling.Closest(word, names); name != "" {
		return fmt.Sprintf("did you mean %s?", name)
	}
	return validNames(names)
}

// recordedUID returns the uid that the upstream's status records for an object of a downstream, or for deletion.before.
func (w *caseRun) recordedUID(made status.Recorded) types.UID {
	list, _ := w.records()
	i := slices.IndexFunc(list, func(have status.Recorded) bool {
		return w.Pipeline.KeyOf(have) == w.Pipeline.KeyOf(made)
	})
	if i >= 0 {
		return list[i].UID
	}
	return ""
}

// records returns what the upstream's status records of downstreams, and its path; none if the config has no path.
func (w *caseRun) records() ([]status.Recorded, fieldpath.Path) {
	path, _ := fieldpath.Parse(w.Pipeline.Config.Status.Downstreams) // the loader has checked the path
	have, _ := fieldpath.Get(w.upstream.Object, path)
	return status.RecordedFrom(have), path
}

// record adds what the status would record of an object, unless the status of the case records something.
func (w *caseRun) record(made status.Recorded) error {
	list, path := w.records()
	if len(path) == 0 || made.Name == "" ||
		slices.ContainsFunc(list, func(have status.Recorded) bool {
			return w.Pipeline.KeyOf(have) == w.Pipeline.KeyOf(made)
		}) {
		return nil
	}
	return fieldpath.Set(w.upstream.Object, path, status.RecordedList(append(list, made)))
}

// change writes what others have changed. The status is stored as in the case, without validation.
func (w *caseRun) change(
	ctx context.Context, at dynamic.ResourceInterface, u *unstructured.Unstructured, e liveEntry,
) error {
	if len(e.changes) == 0 {
		return nil
	}
	by := e.by
	if by == "" {
		by = defaultManager
	}
	changed := patched(u, e.changes)
	deleted := changed.GetDeletionTimestamp() // no request sets it
	changed.SetDeletionTimestamp(nil)
	u, err := at.Update(ctx, changed, metav1.UpdateOptions{FieldManager: by})
	if err != nil {
		return err
	}
	u.SetDeletionTimestamp(deleted)
	if state, ok := changed.Object["status"]; ok {
		u.Object["status"] = state
	}
	_, err = w.cluster.Put(u)
	return err
}

// patched returns a copy of an object with a JSON merge patch applied.
func patched(u *unstructured.Unstructured, patch map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: mergePatch(u.DeepCopy().Object, patch)}
}

// mergePatch applies a merge patch of RFC 7386: null removes a key, maps are merged, anything else replaces.
func mergePatch(target, patch map[string]any) map[string]any {
	for key, value := range patch {
		below, isMap := value.(map[string]any)
		switch {
		case value == nil:
			delete(target, key)
		case isMap:
			have, _ := target[key].(map[string]any)
			if have == nil {
				have = map[string]any{}
			}
			target[key] = mergePatch(have, below)
		default:
			target[key] = runtime.DeepCopyJSONValue(value)
		}
	}
	return target
}
