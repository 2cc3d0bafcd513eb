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
	"github.com/corollary-dev/corollary/pkg/pipeline"
	"github.com/corollary-dev/corollary/pkg/spelling"
	"github.com/corollary-dev/corollary/pkg/status"
)

// somebody is the field manager of changes that name none.
const somebody = "somebody"

// place puts an object of a case into the cluster.
func (w *world) place(ctx context.Context, e liveEntry) error {
	if e.object != nil {
		u := unstructured.Unstructured{Object: e.object}
		if u.GetKind() == "" || u.GetAPIVersion() == "" || u.GetName() == "" {
			return errors.New("object needs apiVersion, kind and metadata.name")
		}
		return w.put(e.object)
	}
	d, made, err := w.made(ctx, e)
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
	if have := w.recordedUID(made.Name); have != "" && have != u.GetUID() {
		u.SetUID(have)
		if u, err = w.cluster.Put(u); err != nil {
			return err
		}
	}
	if err := w.change(ctx, at, u, e); err != nil {
		return fmt.Errorf("changes: %w", err)
	}
	w.transport.immutable[pathOf(&d.Kind, pipeline.Ref{Namespace: made.Namespace, Name: made.ObjectName})] = e.immutable
	return nil
}

// made has the reconciler make what an entry says was applied, and returns where that is and what the status records of it.
func (w *world) made(ctx context.Context, e liveEntry) (*pipeline.Downstream, *status.Recorded, error) {
	then, err := w.cluster.Put(patched(w.upstream, e.upstream))
	if err != nil {
		return nil, nil, err
	}
	if e.applied == pipeline.BeforeName && w.Pipeline.Before != nil {
		made, err := w.madeBefore(ctx, then)
		return w.Pipeline.Before.Object, made, err
	}
	i := slices.IndexFunc(w.Pipeline.Downstreams, func(d *pipeline.Downstream) bool { return d.Name == e.applied })
	if i < 0 {
		return nil, nil, fmt.Errorf("applied is %q: %s", e.applied, w.downstreamNames(e.applied))
	}
	desired, made, err := w.reconciler.Make(ctx, then, i)
	switch {
	case err != nil:
		return nil, nil, fmt.Errorf("applying %s: %w", e.applied, err)
	case len(desired.Invalid) > 0:
		return nil, nil, fmt.Errorf("the upstream then was invalid, so nothing was applied: %s", desired.Invalid[0])
	case desired.Downstreams[i].Err != nil:
		return nil, nil, fmt.Errorf("nothing could be applied then: %w", w.Located(i, desired.Downstreams[i].Err))
	case !desired.Downstreams[i].Wanted:
		return nil, nil, fmt.Errorf("the upstream then did not ask for %s, since when is false: say under upstream what it said", e.applied)
	}
	if made == nil { // the status has no place for it
		at := desired.Downstreams[i].Target
		made = &status.Recorded{Namespace: at.Namespace, ObjectName: at.Name}
	}
	return w.Pipeline.Downstreams[i], made, nil
}

// madeBefore makes the object of deletion.before.
func (w *world) madeBefore(ctx context.Context, then *unstructured.Unstructured) (*status.Recorded, error) {
	p := w.Pipeline
	desired := p.DesiredBefore(then, w.inputs(ctx, then))
	if desired.Err != nil {
		return nil, fmt.Errorf("nothing could be made then: %w", desired.Err)
	}
	at := desired.Target
	document := unstructured.Unstructured{Object: p.BeforeDocument(&desired)}
	u, err := w.resource(&p.Before.Object.Kind, at.Namespace).Apply(ctx, at.Name, &document,
		metav1.ApplyOptions{FieldManager: p.Config.Conventions.FieldManager, Force: true})
	if err != nil {
		return nil, fmt.Errorf("applying %s: %w", pipeline.BeforeName, err)
	}
	return &status.Recorded{Name: pipeline.BeforeName, APIVersion: p.Before.Config.APIVersion, Kind: p.Before.Config.Kind,
		Namespace: at.Namespace, ObjectName: at.Name, UID: u.GetUID(), State: string(pipeline.StateBeforeRunning)}, nil
}

// inputs are what is read of an upstream's inputs.
func (w *world) inputs(ctx context.Context, upstream *unstructured.Unstructured) pipeline.Inputs {
	return w.Pipeline.InputsAt(w.Pipeline.InputRefs(ctx, upstream), func(s *pipeline.InputSource, at pipeline.Ref) map[string]any {
		if found, ok := w.reconciler.Cache.Input(s.Index, at).(input); ok {
			return found.read
		}
		return nil
	})
}

func (w *world) downstreamNames(word string) string {
	var names []string
	for _, d := range w.Pipeline.Downstreams {
		names = append(names, d.Name)
	}
	if name := spelling.Closest(word, names); name != "" {
		return fmt.Sprintf("did you mean %s?", name)
	}
	return thereIs(names)
}

// recordedUID is the uid that the upstream's status has of a downstream, or of the object of deletion.before.
func (w *world) recordedUID(name string) types.UID {
	list, _ := w.records()
	if i := slices.IndexFunc(list, func(have status.Recorded) bool { return have.Name == name }); i >= 0 {
		return list[i].UID
	}
	return ""
}

// records are what the upstream's status says of downstreams, at the path; none where the config names no path for them.
func (w *world) records() ([]status.Recorded, fieldpath.Path) {
	path, _ := fieldpath.Parse(w.Pipeline.Config.Status.Downstreams) // the loader lets no other path through
	have, _ := fieldpath.Get(w.upstream.Object, path)
	return status.RecordedFrom(have), path
}

// record adds to the upstream's status what it would say of an object, unless the case's own status says something.
func (w *world) record(made status.Recorded) error {
	list, path := w.records()
	if len(path) == 0 || made.Name == "" || slices.ContainsFunc(list, func(have status.Recorded) bool { return have.Name == made.Name }) {
		return nil
	}
	return fieldpath.Set(w.upstream.Object, path, status.RecordedList(append(list, made)))
}

// change writes what others have written since. A status is stored as the case says it: not all that a schema may ask for.
func (w *world) change(ctx context.Context, at dynamic.ResourceInterface, u *unstructured.Unstructured, e liveEntry) error {
	if len(e.changes) == 0 {
		return nil
	}
	by := e.by
	if by == "" {
		by = somebody
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

// mergePatch changes a map as RFC 7386 has it: null takes a key away, maps are merged, anything else replaces.
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
