package memcluster

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	listvalidation "k8s.io/apimachinery/pkg/apis/meta/internalversion/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func equal(a, b *unstructured.Unstructured) bool {
	return equality.Semantic.DeepEqual(a.Object, b.Object)
}

func (c *Cluster) get(call *call) (any, int, error) {
	u, err := c.live(call)
	return u, http.StatusOK, err
}

// selection is the part of a resource that a list or a watch selects.
type selection struct {
	resource  *resource
	namespace string // "" for all
	labels    labels.Selector
	fields    fields.Selector
}

func (s *selection) has(u *unstructured.Unstructured) bool {
	if u == nil || s.namespace != "" && u.GetNamespace() != s.namespace {
		return false
	}
	place := fields.Set{"metadata.name": u.GetName(), "metadata.namespace": u.GetNamespace()}
	return s.labels.Matches(labels.Set(u.GetLabels())) && s.fields.Matches(place)
}

// listOptions parses the parameters of a list or a watch, and what they select.
func (c *call) listOptions() (*internalversion.ListOptions, *selection, error) {
	o := &internalversion.ListOptions{}
	if err := scheme.ParameterCodec.DecodeParameters(c.query, metav1.SchemeGroupVersion, o); err != nil {
		return nil, nil, apierrors.NewBadRequest(err.Error())
	}
	if errs := listvalidation.ValidateListOptions(o, true); len(errs) > 0 {
		return nil, nil, apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "ListOptions"}, "", errs)
	}
	s := &selection{resource: c.resource, namespace: c.namespace, labels: labels.Everything(), fields: fields.Everything()}
	if o.LabelSelector != nil {
		s.labels = o.LabelSelector
	}
	if o.FieldSelector != nil {
		s.fields = o.FieldSelector
	}
	for _, required := range s.fields.Requirements() {
		switch {
		case required.Field == "metadata.name" || required.Field == "metadata.namespace" && c.resource.Namespaced:
		case c.resource.custom == nil:
			return nil, nil, unsupported("the field selector " + required.Field)
		default:
			return nil, nil, apierrors.NewBadRequest(fmt.Sprintf("field label not supported: %s", required.Field))
		}
	}
	return o, s, nil
}

// nextPage parses a continue token: the resourceVersion of the list and the last object of the page before.
func nextPage(token string) (version, after string, err error) {
	text, err := base64.RawURLEncoding.DecodeString(token)
	version, after, ok := strings.Cut(string(text), " ")
	if err != nil || !ok {
		return "", "", apierrors.NewBadRequest("continue key is not valid")
	}
	return version, after, nil
}

// parseVersion parses the resourceVersion of a list or a watch: 0 for any.
func (c *Cluster) parseVersion(text string) (uint64, error) {
	if text == "" {
		return 0, nil
	}
	version, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, apierrors.NewBadRequest(
			"invalid resource version: " + field.Invalid(field.NewPath("resourceVersion"), text, err.Error()).Error(),
		)
	}
	if version > c.version {
		late := apierrors.NewTimeoutError(fmt.Sprintf("Too large resource version: %d, current: %d", version, c.version), 1)
		late.ErrStatus.Details.Causes = []metav1.StatusCause{
			{Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version"},
		}
		return 0, late
	}
	return version, nil
}

// list handles a list, or starts a watch.
func (c *Cluster) list(call *call) (any, int, error) {
	o, s, err := call.listOptions()
	if err != nil {
		return nil, 0, err
	}
	if o.Watch {
		watch, err := c.watch(call, s, o)
		return watch, http.StatusOK, err
	}
	exact, after := o.ResourceVersionMatch == metav1.ResourceVersionMatchExact, ""
	if o.Continue != "" {
		if o.ResourceVersion, after, err = nextPage(o.Continue); err != nil {
			return nil, 0, err
		}
		exact = true
	}
	version, err := c.parseVersion(o.ResourceVersion)
	if err != nil {
		return nil, 0, err
	}
	if !exact {
		version = c.version
	}
	objects, err := c.at(s, version)
	if err != nil {
		return nil, 0, err
	}
	out := &list{
		TypeMeta: s.resource.typeMeta(),
		Metadata: listMeta{ResourceVersion: strconv.FormatUint(version, 10)},
		Items:    []map[string]any{},
	}
	out.Kind = s.resource.list
	if s.resource.custom != nil {
		out.Metadata.Continue = new(string)
	}
	for i, u := range objects {
		if nameOf(u).String() <= after {
			continue
		}
		if o.Limit > 0 && len(out.Items) == int(o.Limit) {
			left := int64(len(objects) - i)
			next := base64.RawURLEncoding.EncodeToString([]byte(out.Metadata.ResourceVersion + " " + nameOf(objects[i-1]).String()))
			out.Metadata.Continue = &next
			if s.labels.Empty() && s.fields.Empty() {
				out.Metadata.RemainingItemCount = &left
			}
			break
		}
		out.Items = append(out.Items, s.resource.item(u))
	}
	return out, http.StatusOK, nil
}

// item returns an object as in a list: those of built-in kinds have no apiVersion and kind.
func (r *resource) item(u *unstructured.Unstructured) map[string]any {
	if r.custom != nil || r.GVR == definitionsResource {
		return u.Object
	}
	out := map[string]any{}
	for key, value := range u.Object {
		if key != "apiVersion" && key != "kind" {
			out[key] = value
		}
	}
	return out
}

// at returns the selected objects at a resourceVersion, ordered by namespace and name.
func (c *Cluster) at(s *selection, version uint64) ([]*unstructured.Unstructured, error) {
	if version < c.forgotten && version < c.version {
		return nil, apierrors.NewResourceExpired("The provided continue parameter or resourceVersion is too old")
	}
	then := map[types.NamespacedName]*unstructured.Unstructured{}
	for at, u := range c.objects[s.resource.GVR.GroupResource()] {
		then[at] = u
	}
	for _, past := range slices.Backward(c.history) {
		switch {
		case past.version <= version || past.resource != s.resource.GVR.GroupResource():
		case past.old == nil:
			delete(then, nameOf(past.new))
		default:
			then[nameOf(past.old)] = past.old
		}
	}
	var out []*unstructured.Unstructured
	for _, u := range then {
		if !s.has(u) {
			continue
		}
		u, err := s.resource.view(u)
		if err != nil {
			return nil, err
		}
		out = append(out, u)
	}
	slices.SortFunc(out, func(a, b *unstructured.Unstructured) int {
		return strings.Compare(nameOf(a).String(), nameOf(b).String())
	})
	return out, nil
}
