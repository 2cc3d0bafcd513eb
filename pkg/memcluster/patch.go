package memcluster

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/corollary-dev/corollary/pkg/memcluster/answers"
)

// patch handles a PATCH.
func (c *Cluster) patch(call *call) (any, int, error) {
	kind, err := call.patchType()
	if err != nil {
		return nil, 0, err
	}
	o, err := call.options("PatchOptions", kind)
	if err != nil {
		return nil, 0, err
	}
	live, err := c.live(call)
	if err != nil && (kind != types.ApplyYAMLPatchType || call.sub != "" || !apierrors.IsNotFound(err)) {
		return nil, 0, err
	}
	change := call.changeByPatch
	if kind == types.ApplyYAMLPatchType {
		change = call.changeByApply
	}
	u, err := change(live, kind, o)
	if err != nil {
		return nil, 0, err
	}
	if live == nil && u.GetUID() != "" {
		return nil, 0, apierrors.NewConflict(call.groupResource(), call.name,
			fmt.Errorf("uid mismatch: the provided object specified uid %s, and no existing object was found", u.GetUID()))
	}
	if u.GetNamespace() == "" || !call.resource.Namespaced {
		u.SetNamespace(call.namespace)
	}
	if err := call.checkNames(u.GetName(), u.GetNamespace()); err != nil {
		return nil, 0, err
	}
	if live == nil {
		out, err := c.insert(call, u, o)
		return out, http.StatusCreated, err
	}
	out, err := c.replace(call, live, u, o)
	return out, http.StatusOK, err
}

// patchType returns the type of the patch in the body.
func (c *call) patchType() (types.PatchType, error) {
	mediaType, _, _ := strings.Cut(c.http.Header.Get("Content-Type"), ";")
	kind := types.PatchType(mediaType)
	switch {
	case kind == types.StrategicMergePatchType && c.resource.Custom == nil:
	case kind != types.ApplyYAMLPatchType && kind != types.MergePatchType && kind != types.JSONPatchType:
		return "", answers.MediaTypeRefused(
			"application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml")
	}
	return kind, nil
}

// changeByApply merges the document of a server-side apply into the live object, nil for none.
func (c *call) changeByApply(
	live *unstructured.Unstructured, _ types.PatchType, o options,
) (*unstructured.Unstructured, error) {
	document := &unstructured.Unstructured{Object: map[string]any{}}
	if err := yaml.Unmarshal(c.body, &document.Object); err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding YAML: %v", err))
	}
	if live == nil {
		var err error
		if live, err = c.resource.Blank(); err != nil {
			return nil, err
		}
	}
	fields, err := c.resource.FieldManager(c.sub)
	if err != nil {
		return nil, err
	}
	merged, err := fields.Apply(live.DeepCopy(), document, o.manager, o.force)
	if err != nil {
		return nil, err
	}
	if o.isStrict() {
		if err := yaml.UnmarshalStrict(c.body, &map[string]any{}); err != nil {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("error strict decoding YAML: %v", err))
		}
	}
	return c.resource.Normalize(merged.(*unstructured.Unstructured))
}

// changeByPatch changes the live object by a JSON patch, a merge patch or a strategic merge patch.
func (c *call) changeByPatch(
	live *unstructured.Unstructured, kind types.PatchType, o options,
) (*unstructured.Unstructured, error) {
	after, err := c.patched(answers.Encode(live), kind)
	if err != nil {
		return nil, err
	}
	u, err := c.resource.Decode(after, answers.AsJSON, o.isStrict())
	if err != nil {
		errs := field.ErrorList{field.Invalid(field.NewPath("patch"), string(after), err.Error())}
		return nil, apierrors.NewInvalid(schema.GroupKind{}, "", errs)
	}
	return c.updateManagedFields(live, u, o)
}

// patched is an object as JSON after the patch in the body.
func (c *call) patched(before []byte, kind types.PatchType) ([]byte, error) {
	if kind == types.JSONPatchType {
		operations, err := jsonpatch.DecodePatch(c.body)
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		after, err := operations.Apply(before)
		if err != nil {
			return nil, apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "",
				schema.GroupResource{}, "", err.Error(), 0, false)
		}
		return after, nil
	}
	merge := c.resource.MergeStrategically
	if kind == types.MergePatchType {
		if merge = jsonpatch.MergePatch; !json.Valid(c.body) {
			return nil, apierrors.NewBadRequest("error decoding patch: invalid JSON")
		}
	}
	after, err := merge(before, c.body)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return after, nil
}
