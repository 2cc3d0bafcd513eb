package backup

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

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
	stored, err := p.patch(ctx, objects, u.GetName(), operations)
	// an operator that was not paused may have made other values since
	if err == nil && archive.IsSecret(t.GVR().GroupResource()) {
		p.compare(t, u, map[string]any{"data": want.Object["data"]}, map[string]any{"data": stored.Object["data"]})
	}
	return err
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
