package backup

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/corollary-dev/corollary/pkg/backup/archive"
	"github.com/corollary-dev/corollary/pkg/backup/contents"
)

// finish restores status and managedFields, and unpauses upstreams: what is owned comes before its owner.
func (p *pass) finish(ctx context.Context) error {
	for _, t := range slices.Backward(p.kinds) {
		for _, f := range p.files(t) {
			if !p.Archive.Readable(f) {
				continue
			}
			err := p.each(t, f, func(u *unstructured.Unstructured) error {
				generation, ok := p.unfinished[u.GetUID()]
				if !ok {
					return nil
				}
				if err := p.finishObject(ctx, t, u, generation); err != nil {
					p.refuse(t, u, fmt.Errorf("restoring status and managedFields: %w", err))
					return ctx.Err()
				}
				p.result.Finished++
				return nil
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *pass) finishObject(ctx context.Context, t *target, u *unstructured.Unstructured, generation int64) error {
	objects := p.objects(t, u.GetNamespace())
	same := operation{"test", "/metadata/uid", p.now[u.GetUID()]}
	if status, ok := u.Object["status"]; ok && t.HasStatus && tellsWork(u) && !p.older[u.GetUID()] {
		copied := p.namespace(u.GetNamespace()) != u.GetNamespace()
		translation := &contents.Translation{UIDs: p.now, Others: p.others, Namespace: p.namespace,
			OldGeneration: u.GetGeneration(), Generation: generation, Copied: copied}
		status = translation.Status(status)
		stored, err := p.patch(ctx, objects, u.GetName(), []operation{same, {"add", "/status", status}}, "status")
		if err != nil {
			return err
		}
		p.compare(t, u, map[string]any{"status": status}, map[string]any{"status": stored.Object["status"]})
	}
	if p.DryRun {
		return nil // what is left to do undoes what was not done
	}
	want, pairs, err := p.prepare(ctx, t, u)
	if err != nil {
		return err
	}
	managers, err := p.managers(ctx, t, u, pairs)
	if err != nil {
		return err
	}
	released := release(u)
	operations := []operation{same, {"replace", "/metadata/managedFields", managers}}
	for _, key := range p.pauseKeys(t) {
		path := "/metadata/annotations/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
		switch value, ok := want.GetAnnotations()[key]; {
		case !ok:
			operations = append(operations, operation{"remove", path, nil})
		case value != paused:
			released = append(released, operation{"add", path, value})
		}
	}
	if len(released) > 0 { // by itself: with managedFields, what it changes would be ours
		if _, err := p.patch(ctx, objects, u.GetName(), append([]operation{same}, released...)); err != nil {
			return err
		}
	}
	stored, err := restoreManagers(ctx, p, objects, u, operations)
	// an operator that was not paused may have made other values since
	if err == nil && archive.IsSecret(t.GVR().GroupResource()) {
		p.compare(t, u, map[string]any{"data": want.Object["data"]}, map[string]any{"data": stored.Object["data"]})
	}
	return err
}

// restoreManagers sends the operations that restore managedFields. Of an object whose later status stays, the owners of
// that stay, too: else no manager could remove from it what the backup does not have.
func restoreManagers(
	ctx context.Context, p *pass, objects dynamic.ResourceInterface, u *unstructured.Unstructured, operations []operation,
) (*unstructured.Unstructured, error) {
	if !p.older[u.GetUID()] {
		return p.patch(ctx, objects, u.GetName(), operations)
	}
	for n := 1; ; n++ {
		live, err := objects.Get(ctx, u.GetName(), metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		merged, err := withStatusOwners(operations, live)
		if err != nil {
			return nil, err
		}
		stored, err := p.patch(ctx, objects, u.GetName(), merged)
		const most = 5 // its operator may write the status meanwhile
		if err == nil || n == most || !apierrors.IsInvalid(err) && !apierrors.IsConflict(err) {
			return stored, err
		}
	}
}

// withStatusOwners are operations that leave the owners of a live status in place, as long as the object is that one.
func withStatusOwners(operations []operation, live *unstructured.Unstructured) ([]operation, error) {
	list := append([]operation{{"test", "/metadata/resourceVersion", live.GetResourceVersion()}}, operations...)
	isOfStatus := func(e metav1.ManagedFieldsEntry) bool { return e.Subresource == "status" }
	for i, op := range list {
		if op.Path != "/metadata/managedFields" {
			continue
		}
		var entries []metav1.ManagedFieldsEntry
		text, err := json.Marshal(op.Value)
		if err == nil {
			err = json.Unmarshal(text, &entries)
		}
		if err != nil {
			return nil, err
		}
		entries = slices.DeleteFunc(entries, func(e metav1.ManagedFieldsEntry) bool {
			return isOfStatus(e) || e.Manager == "" // the latter clears them
		})
		for _, e := range live.GetManagedFields() {
			if isOfStatus(e) {
				entries = append(entries, e)
			}
		}
		if list[i].Value = entries; len(entries) == 0 {
			list[i].Value = op.Value
		}
	}
	return list, nil
}

type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

func (p *pass) patch(ctx context.Context, objects dynamic.ResourceInterface, name string, operations []operation,
	subresources ...string) (*unstructured.Unstructured, error) {
	text, err := json.Marshal(operations)
	if err != nil {
		return nil, err
	}
	return objects.Patch(ctx, name, types.JSONPatchType, text,
		metav1.PatchOptions{FieldManager: p.FieldManager, DryRun: p.dryRun()},
		subresources...)
}
