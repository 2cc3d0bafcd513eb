package cases

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/corollary-dev/corollary/pkg/offline"
	"github.com/corollary-dev/corollary/pkg/pipeline"
	"github.com/corollary-dev/corollary/pkg/spelling"
	"github.com/corollary-dev/corollary/pkg/status"
)

// somebody is the field manager of changes that name none.
const somebody = "somebody"

// place puts an object of a case into the cluster.
func (r *run) place(ctx context.Context, e liveEntry, objects offline.Given) error {
	if e.object != nil {
		return r.placeObject(e.object)
	}
	if e.applied == pipeline.BeforeName && r.Pipeline.Before != nil {
		return r.placeHook(e)
	}
	i := slices.IndexFunc(r.Pipeline.Downstreams, func(d *pipeline.Downstream) bool { return d.Name == e.applied })
	if i < 0 {
		return fmt.Errorf("applied is %q: %s", e.applied, r.downstreamNames(e.applied))
	}
	then := patched(r.upstream, e.upstream)
	inputs := objects.InputsFor(ctx, r.Pipeline, then)
	w := r.Pipeline.Desired(ctx, then, inputs)
	switch {
	case len(w.Invalid) > 0:
		return fmt.Errorf("the upstream then was invalid, so nothing was applied: %s", w.Invalid[0])
	case w.Downstreams[i].Err != nil:
		return fmt.Errorf("nothing could be applied then: %w", r.Located(i, w.Downstreams[i].Err))
	case !w.Downstreams[i].Wanted:
		return fmt.Errorf("the upstream then did not ask for %s, since when is false: say under upstream what it said", e.applied)
	}
	document, err := r.Pipeline.Document(w, i, then, inputs, nil)
	if err != nil {
		return err
	}
	u, err := r.server.apply(nil, document, r.Pipeline.Config.Conventions.FieldManager)
	if err != nil {
		return fmt.Errorf("applying %s: %w", e.applied, err)
	}
	r.remember(r.Pipeline.Downstreams[i], u, w.Downstreams[i])
	if u, err = r.change(u, e); err != nil {
		return fmt.Errorf("changes: %w", err)
	}
	r.standing = append(r.standing, &standing{object: u, known: true, immutable: e.immutable})
	return nil
}

// placeHook puts the object of deletion.before into the cluster as it was made, and recorded in the status.
func (r *run) placeHook(e liveEntry) error {
	p := r.Pipeline
	w := p.DesiredBefore(patched(r.upstream, e.upstream), r.inputs)
	if w.Err != nil {
		return fmt.Errorf("nothing could be made then: %w", w.Err)
	}
	u, err := r.server.apply(nil, p.BeforeDocument(&w), p.Config.Conventions.FieldManager)
	if err != nil {
		return fmt.Errorf("applying %s: %w", e.applied, err)
	}
	if rec := p.RecordedBefore(r.upstream); rec == nil {
		r.recordHook(status.Recorded{Name: pipeline.BeforeName, APIVersion: p.Before.Config.APIVersion, Kind: p.Before.Config.Kind,
			Namespace: w.Target.Namespace, ObjectName: w.Target.Name, UID: u.GetUID(), State: string(pipeline.StateBeforeRunning)})
	} else if rec.UID != "" {
		u.SetUID(rec.UID)
	}
	if u, err = r.change(u, e); err != nil {
		return fmt.Errorf("changes: %w", err)
	}
	r.standing = append(r.standing, &standing{object: u, known: true})
	return nil
}

func (r *run) downstreamNames(word string) string {
	var names []string
	for _, d := range r.Pipeline.Downstreams {
		names = append(names, d.Name)
	}
	if name := spelling.Closest(word, names); name != "" {
		return fmt.Sprintf("did you mean %s?", name)
	}
	return thereIs(names)
}

// remember records what was applied as the upstream's status would, unless the case's own status does.
func (r *run) remember(d *pipeline.Downstream, u *unstructured.Unstructured, w pipeline.DesiredDownstream) {
	if rec := r.recordedAs(d.Name); rec != nil && rec.UID != "" {
		u.SetUID(rec.UID)
		return
	}
	if r.recordedAs(d.Name) == nil {
		r.recorded = append(r.recorded, status.Recorded{Name: d.Name, APIVersion: d.Config.APIVersion, Kind: d.Config.Kind,
			Namespace: w.Target.Namespace, ObjectName: w.Target.Name, UID: u.GetUID(), Hash: w.Hash, State: string(pipeline.StateInSync)})
	}
}

// change writes what others have written since: what is in the status by its subresource.
func (r *run) change(u *unstructured.Unstructured, e liveEntry) (*unstructured.Unstructured, error) {
	by := e.by
	if by == "" {
		by = somebody
	}
	changed := patched(u, e.changes)
	state, inStatus := changed.Object["status"]
	delete(changed.Object, "status")
	u, err := r.server.write(u, changed, by, "")
	if err != nil || !inStatus {
		return u, err
	}
	told := u.DeepCopy()
	told.Object["status"] = state
	return r.server.write(u, told, by, "status")
}

// placeObject takes in an object of anybody's.
func (r *run) placeObject(object map[string]any) error {
	u := &unstructured.Unstructured{Object: object}
	u = u.DeepCopy()
	if u.GetKind() == "" || u.GetAPIVersion() == "" || u.GetName() == "" {
		return fmt.Errorf("object needs apiVersion, kind and metadata.name")
	}
	kind, err := r.server.kinds.Kind(u.GroupVersionKind())
	if err != nil {
		return err
	}
	if kind.Namespaced && u.GetNamespace() == "" {
		namespace := r.upstream.GetNamespace()
		if namespace == "" {
			namespace = "default"
		}
		u.SetNamespace(namespace)
	}
	r.server.admit(u)
	r.standing = append(r.standing, &standing{object: u})
	return nil
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
