package apply

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/fieldpath"
)

// Null removes the fields at paths, whoever owns them, by a merge patch that consists of nulls, and returns the object
// as stored. A patch with values would create an Update entry of our manager and remove the fields from its Apply
// entry; nulls do not. ErrConflict: the resourceVersion has changed. ErrReplaced, ErrGone: the object does not exist
// any more. Paths cannot enter lists.
func (c *Client) Null(ctx context.Context, t Target, uid types.UID, resourceVersion string,
	paths []fieldpath.Path) (*unstructured.Unstructured, error) {
	return c.null(ctx, t, uid, resourceVersion, paths, c.dryRun())
}

// DryRunNull returns a dry run of Null: the result has what the API server or admission restores.
func (c *Client) DryRunNull(ctx context.Context, t Target, uid types.UID, resourceVersion string,
	paths []fieldpath.Path) (*unstructured.Unstructured, error) {
	return c.null(ctx, t, uid, resourceVersion, paths, []string{metav1.DryRunAll})
}

func (c *Client) null(ctx context.Context, t Target, uid types.UID, resourceVersion string, paths []fieldpath.Path,
	dryRun []string) (*unstructured.Unstructured, error) {
	o := op{verb: "patch", doing: "removing fields from", needs: "patch"}
	body, err := nulls(paths)
	if err == nil {
		err = precondition(body, uid, resourceVersion)
	}
	if err != nil {
		return nil, &Error{Verb: o.verb, Target: t, Err: err, op: o}
	}
	out, failed := c.patch(ctx, o, t, types.MergePatchType, body, metav1.PatchOptions{DryRun: dryRun})
	if failed != nil {
		return nil, c.explainConflict(ctx, t, uid, failed)
	}
	return out, nil
}

// nulls returns a merge patch that has null at each path.
func nulls(paths []fieldpath.Path) (map[string]any, error) {
	body := map[string]any{}
	for _, p := range paths {
		for _, s := range p {
			if s.Kind != fieldpath.FieldStep {
				return nil, fmt.Errorf("%s: a field inside a list cannot be removed by itself", p)
			}
		}
		if err := fieldpath.Set(body, p, nil); err != nil {
			return nil, err
		}
	}
	return body, nil
}

// precondition restricts a patch to the object with that uid at that resourceVersion.
func precondition(body map[string]any, uid types.UID, resourceVersion string) error {
	if uid == "" {
		return errNoUID
	}
	if resourceVersion == "" {
		return errNoVersion
	}
	meta, ok := body["metadata"].(map[string]any)
	if !ok {
		meta = map[string]any{}
		body["metadata"] = meta
	}
	meta["uid"], meta["resourceVersion"] = string(uid), resourceVersion
	return nil
}

// errNoVersion is an internal error: without a resourceVersion a change since the read would be overwritten.
var errNoVersion = errors.New("no resourceVersion was given")
