package memcluster

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	clientscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/corollary-dev/corollary/pkg/offline"
)

// untyped has custom resources read as they are.
type untyped struct{ runtime.ObjectTyper }

// New implements runtime.ObjectCreater.
func (untyped) New(gvk schema.GroupVersionKind) (runtime.Object, error) { return blank(gvk), nil }

// ObjectKinds implements runtime.ObjectTyper.
func (untyped) ObjectKinds(in runtime.Object) ([]schema.GroupVersionKind, bool, error) {
	return []schema.GroupVersionKind{in.GetObjectKind().GroupVersionKind()}, false, nil
}

var serializers = sync.OnceValue(func() map[bool]map[string]runtime.Serializer {
	out := map[bool]map[string]runtime.Serializer{}
	for _, custom := range []bool{false, true} {
		maker, typer := runtime.ObjectCreater(clientscheme.Scheme), runtime.ObjectTyper(clientscheme.Scheme)
		if custom {
			maker, typer = untyped{}, untyped{}
		}
		out[custom] = map[string]runtime.Serializer{}
		for _, mediaType := range []string{"application/json", "application/yaml"} {
			out[custom][mediaType] = json.NewSerializerWithOptions(json.DefaultMetaFactory, maker, typer,
				json.SerializerOptions{Strict: true, Yaml: mediaType == "application/yaml"})
		}
	}
	return out
})

// decode reads an object of the resource as the API server does: in the form that it is stored in, with defaults. The strict
// errors are about fields that the kind does not have, or that are there twice.
func (r *resource) decode(body []byte, mediaType string) (u *unstructured.Unstructured, strict []error, err error) {
	mediaType, _, _ = strings.Cut(mediaType, ";")
	if mediaType == "" {
		mediaType = "application/json"
	}
	serializer := serializers()[r.custom != nil][mediaType]
	if serializer == nil {
		return nil, nil, mediaTypeRefused("application/json, application/yaml")
	}
	object, gvk, err := serializer.Decode(body, &r.GVK, nil)
	if unknown, ok := runtime.AsStrictDecodingError(err); ok && object != nil {
		strict, err = unknown.Errors(), nil
	}
	switch {
	case err != nil:
		return nil, nil, err
	case gvk.GroupVersion() != r.GVK.GroupVersion():
		return nil, nil, apierrors.NewBadRequest(fmt.Sprintf("the API version in the data (%s) does not match the expected API version (%s)",
			gvk.GroupVersion(), r.GVK.GroupVersion()))
	case gvk.Kind != r.GVK.Kind && r.custom == nil:
		return nil, nil, apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s", gvk.Kind, r.GVK.Version, r.GVK.Kind))
	}
	if r.custom == nil {
		u, err = r.untype(object)
		return u, strict, err
	}
	u = object.(*unstructured.Unstructured)
	unknown, err := r.coerce(u)
	for _, path := range unknown {
		strict = append(strict, fmt.Errorf("unknown field %q", path))
	}
	return u, strict, err
}

// read is decode for the body of a request, which is an object.
func (c *call) read(o options) (*unstructured.Unstructured, error) {
	u, strict, err := c.resource.decode(c.body, c.http.Header.Get("Content-Type"))
	if err == nil && len(strict) > 0 && o.validation == metav1.FieldValidationStrict {
		err = runtime.NewStrictDecodingError(strict)
	}
	if err == nil {
		return u, nil
	}
	var known apierrors.APIStatus
	if errors.As(err, &known) {
		return nil, err
	}
	return nil, apierrors.NewBadRequest(
		fmt.Sprintf("%s in version %q cannot be handled as a %s: %v", c.resource.GVK.Kind, c.resource.GVK.Version,
			c.resource.GVK.Kind, err),
	)
}

// normal brings an object that was merged from an apply into the form that it is stored in.
func (r *resource) normal(u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if r.custom != nil {
		_, err := r.coerce(u)
		return u, err
	}
	object, err := clientscheme.Scheme.New(r.GVK)
	if err != nil {
		return nil, err
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, object); err != nil {
		return nil, err
	}
	return r.untype(object)
}

// blank is an object without content, as the Go type of a built-in kind has it.
func (r *resource) blank() (*unstructured.Unstructured, error) {
	if r.custom != nil {
		return blank(r.GVK), nil
	}
	object, err := clientscheme.Scheme.New(r.GVK)
	if err != nil {
		return nil, err
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(r.GVK)
	return u, nil
}

// untype returns a built-in object as JSON has it, with the defaults that its schema names.
func (r *resource) untype(object runtime.Object) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, err
	}
	s, err := r.schema()
	if err != nil {
		return nil, err
	}
	offline.FillDefaults(content, s)
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(r.GVK)
	switch r.GVK.GroupKind() {
	case schema.GroupKind{Kind: "Secret"}:
		normalSecret(content)
	case schema.GroupKind{Kind: "Namespace"}:
		labels := u.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		if u.GetName() != "" {
			labels[corev1.LabelMetadataName] = u.GetName()
			u.SetLabels(labels)
		}
	}
	return u, nil
}

// normalSecret has a Secret's stringData become data, and gives it a type.
func normalSecret(content map[string]any) {
	if texts, ok := content["stringData"].(map[string]any); ok {
		data, _ := content["data"].(map[string]any)
		if data == nil {
			data = map[string]any{}
		}
		for key, text := range texts {
			data[key] = base64.StdEncoding.EncodeToString([]byte(text.(string)))
		}
		content["data"] = data
		delete(content, "stringData")
	}
	if content["type"] == nil {
		content["type"] = "Opaque"
	}
}
