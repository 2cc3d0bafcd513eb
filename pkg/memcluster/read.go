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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

type nameKey = types.NamespacedName

func equal(a, b *unstructured.Unstructured) bool {
	return equality.Semantic.DeepEqual(a.Object, b.Object)
}

func (c *Cluster) get(call *call) (any, int, error) {
	u, err := c.live(call)
	return u, http.StatusOK, err
}

// selection is what of a resource a list or a watch asks for.
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

func (c *call) selection() (*selection, error) {
	s := &selection{resource: c.resource, namespace: c.namespace}
	var err error
	if s.labels, err = labels.Parse(c.query.Get("labelSelector")); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if s.fields, err = fields.ParseSelector(c.query.Get("fieldSelector")); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	for _, required := range s.fields.Requirements() {
		switch {
		case required.Field == "metadata.name" || required.Field == "metadata.namespace" && c.resource.Namespaced:
		case c.resource.custom == nil:
			return nil, unsupported("the field selector " + required.Field)
		default:
			return nil, apierrors.NewBadRequest(fmt.Sprintf("field label not supported: %s", required.Field))
		}
	}
	return s, nil
}

// listOptions are the parameters of a list and a watch that are about versions.
type listOptions struct {
	watch, initialEvents, bookmarks bool
	version                         string
	exact                           bool
	limit                           int
	next                            string // the key that the page begins after
}

func (c *call) listOptions() (*listOptions, error) {
	q := c.query
	o := &listOptions{watch: isTrue(q.Get("watch")), bookmarks: isTrue(q.Get("allowWatchBookmarks")), version: q.Get("resourceVersion")}
	match := metav1.ResourceVersionMatch(q.Get("resourceVersionMatch"))
	o.initialEvents, o.exact = isTrue(q.Get("sendInitialEvents")), match == metav1.ResourceVersionMatchExact
	o.limit, _ = strconv.Atoi(q.Get("limit")) // as that of an API server: what is not a number is no limit
	if errs := o.validate(match, q.Has("sendInitialEvents")); len(errs) > 0 {
		return nil, apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "ListOptions"}, "", errs)
	}
	return o, o.proceed(q.Get("continue"))
}

// validate says which options do not go together. said: sendInitialEvents is among them, true or false.
func (o *listOptions) validate(match metav1.ResourceVersionMatch, said bool) field.ErrorList {
	path := field.NewPath("resourceVersionMatch")
	var errs field.ErrorList
	switch {
	case said && !o.watch:
		errs = append(errs, field.Forbidden(field.NewPath("sendInitialEvents"), "sendInitialEvents is forbidden for list"))
	case said && match == "":
		errs = append(errs, field.Forbidden(path, "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"))
	case said && match != metav1.ResourceVersionMatchNotOlderThan:
		errs = append(errs, field.Forbidden(path, "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"),
			field.NotSupported(path, match, []string{string(metav1.ResourceVersionMatchNotOlderThan)}))
	case o.watch && !said && match != "":
		errs = append(errs, field.Forbidden(path, "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"))
	case !o.watch && match != "" && o.version == "":
		errs = append(errs, field.Forbidden(path, "resourceVersionMatch is forbidden unless resourceVersion is provided"))
	case !o.watch && o.exact && o.version == "0":
		errs = append(errs, field.Forbidden(path, `resourceVersionMatch "exact" is forbidden for resourceVersion "0"`))
	}
	return errs
}

// proceed reads where the last page of a list ended.
func (o *listOptions) proceed(token string) error {
	if token == "" {
		return nil
	}
	text, err := base64.RawURLEncoding.DecodeString(token)
	version, next, ok := strings.Cut(string(text), " ")
	if err != nil || !ok {
		return apierrors.NewBadRequest("continue key is not valid")
	}
	o.version, o.exact, o.next = version, true, next
	return nil
}

func isTrue(text string) bool {
	b, err := strconv.ParseBool(text)
	return err == nil && b
}

// wanted reads the resourceVersion of a list or a watch: 0 for any.
func (c *Cluster) wanted(o *listOptions) (uint64, error) {
	if o.version == "" {
		return 0, nil
	}
	version, err := strconv.ParseUint(o.version, 10, 64)
	if err != nil {
		return 0, apierrors.NewBadRequest(
			"invalid resource version: " + field.Invalid(field.NewPath("resourceVersion"), o.version, err.Error()).Error(),
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

// list answers a list, or begins a watch.
func (c *Cluster) list(call *call) (any, int, error) {
	s, err := call.selection()
	if err != nil {
		return nil, 0, err
	}
	o, err := call.listOptions()
	if err != nil {
		return nil, 0, err
	}
	if o.watch {
		watch, err := c.watch(call, s, o)
		return watch, http.StatusOK, err
	}
	version, err := c.wanted(o)
	if err != nil {
		return nil, 0, err
	}
	if !o.exact {
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
		if keyOf(u) <= o.next {
			continue
		}
		if o.limit > 0 && len(out.Items) == o.limit {
			left := int64(len(objects) - i)
			next := base64.RawURLEncoding.EncodeToString([]byte(out.Metadata.ResourceVersion + " " + keyOf(objects[i-1])))
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

// item is an object in a list: those of built-in kinds do not say what they are.
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

// at returns what was selected at a version, in the order of namespace and name.
func (c *Cluster) at(s *selection, version uint64) ([]*unstructured.Unstructured, error) {
	if version < c.forgotten && version < c.version {
		return nil, apierrors.NewResourceExpired("The provided continue parameter or resourceVersion is too old")
	}
	then := map[nameKey]*unstructured.Unstructured{}
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
	slices.SortFunc(out, func(a, b *unstructured.Unstructured) int { return strings.Compare(keyOf(a), keyOf(b)) })
	return out, nil
}

func keyOf(u *unstructured.Unstructured) string { return u.GetNamespace() + "/" + u.GetName() }
