package memcluster

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	listvalidation "k8s.io/apimachinery/pkg/apis/meta/internalversion/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/pkg/memcluster/answers"
	"github.com/corollary-dev/corollary/pkg/memcluster/resource"
	"github.com/corollary-dev/corollary/pkg/memcluster/store"
)

// listOptions parses the parameters of a list or a watch, and what they select.
func (c *call) listOptions() (*internalversion.ListOptions, *store.Selection, error) {
	o := &internalversion.ListOptions{}
	if err := scheme.ParameterCodec.DecodeParameters(c.query, metav1.SchemeGroupVersion, o); err != nil {
		return nil, nil, apierrors.NewBadRequest(err.Error())
	}
	if errs := listvalidation.ValidateListOptions(o, true); len(errs) > 0 {
		return nil, nil, apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "ListOptions"}, "", errs)
	}
	s := &store.Selection{Resource: c.resource, Namespace: c.namespace, Labels: labels.Everything(),
		Fields: fields.Everything()}
	if o.LabelSelector != nil {
		s.Labels = o.LabelSelector
	}
	if o.FieldSelector != nil {
		s.Fields = o.FieldSelector
	}
	for _, required := range s.Fields.Requirements() {
		switch {
		case required.Field == "metadata.name" || required.Field == "metadata.namespace" && c.resource.Namespaced,
			slices.Contains(c.resource.SelectableFields(), required.Field):
		case c.resource.Custom == nil:
			return nil, nil, answers.Unsupported("the field selector " + required.Field)
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

// list handles a list, or starts a watch, whose events have that form.
func (c *Cluster) list(call *call, form *form) (any, int, error) {
	o, s, err := call.listOptions()
	if err != nil {
		return nil, 0, err
	}
	if o.Watch {
		watch, err := c.store.Watch(call.http.Context(), s, o, call.http.UserAgent(), form.event)
		return watch, http.StatusOK, err
	}
	exact, after := o.ResourceVersionMatch == metav1.ResourceVersionMatchExact, ""
	if o.Continue != "" {
		if o.ResourceVersion, after, err = nextPage(o.Continue); err != nil {
			return nil, 0, err
		}
		exact = true
	}
	version, err := c.store.ParseVersion(o.ResourceVersion)
	if err != nil {
		return nil, 0, err
	}
	if !exact {
		version = c.store.Version
	}
	objects, err := c.store.At(s, version)
	if err != nil {
		return nil, 0, err
	}
	out := &answers.List{
		TypeMeta: s.Resource.TypeMeta(),
		Metadata: answers.ListMeta{ResourceVersion: strconv.FormatUint(version, 10)},
		Items:    []map[string]any{},
	}
	out.Kind = s.Resource.List
	if s.Resource.Custom != nil {
		out.Metadata.Continue = new(string)
	}
	for i, u := range objects {
		if resource.NameOf(u).String() <= after {
			continue
		}
		if o.Limit > 0 && len(out.Items) == int(o.Limit) {
			left := int64(len(objects) - i)
			next := base64.RawURLEncoding.EncodeToString([]byte(out.Metadata.ResourceVersion + " " +
				resource.NameOf(objects[i-1]).String()))
			out.Metadata.Continue = &next
			if s.Labels.Empty() && s.Fields.Empty() {
				out.Metadata.RemainingItemCount = &left
			}
			break
		}
		out.Items = append(out.Items, s.Resource.Item(u))
	}
	return out, http.StatusOK, nil
}
