package resource

import (
	"encoding/base64"
	"fmt"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured/unstructuredscheme"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	clientscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/corollary-dev/corollary/pkg/memcluster/answers"
	"github.com/corollary-dev/corollary/pkg/offline"
)

// builtinTypes are the Go types of the built-in kinds. Those of client-go lack CustomResourceDefinitions.
var builtinTypes = sync.OnceValue(func() *runtime.Scheme {
	types := runtime.NewScheme()
	utilruntime.Must(clientscheme.AddToScheme(types))
	utilruntime.Must(apiextensionsv1.AddToScheme(types))
	return types
})

// serializers are indexed by whether they are for custom kinds, and by media type.
var serializers = sync.OnceValue(func() map[bool]map[string]runtime.Serializer {
	out := map[bool]map[string]runtime.Serializer{}
	for _, custom := range []bool{false, true} {
		maker, typer := runtime.ObjectCreater(builtinTypes()), runtime.ObjectTyper(builtinTypes())
		if custom {
			maker, typer = unstructuredscheme.NewUnstructuredCreator(), unstructuredscheme.NewUnstructuredObjectTyper()
		}
		out[custom] = map[string]runtime.Serializer{}
		for _, mediaType := range []string{answers.AsJSON, "application/yaml"} {
			out[custom][mediaType] = json.NewSerializerWithOptions(json.DefaultMetaFactory, maker, typer,
				json.SerializerOptions{Strict: true, Yaml: mediaType == "application/yaml"})
		}
		if !custom {
			out[custom][runtime.ContentTypeProtobuf] = protobuf.NewSerializer(maker, typer)
		}
	}
	return out
})

// Decode parses an object of the resource as the API server does: in its stored form, with defaults. Unknown and
// duplicate fields are an error if fields are validated strictly.
func (r *Resource) Decode(body []byte, mediaType string, strictly bool) (*unstructured.Unstructured, error) {
	u, strict, err := r.decodeStrict(body, mediaType)
	if err == nil && len(strict) > 0 && strictly {
		err = runtime.NewStrictDecodingError(strict)
	}
	return u, err
}

// decodeStrict is decode; strict are the errors for unknown and duplicate fields.
func (r *Resource) decodeStrict(
	body []byte, mediaType string,
) (u *unstructured.Unstructured, strict []error, err error) {
	mediaType, _, _ = strings.Cut(mediaType, ";")
	if mediaType == "" {
		mediaType = answers.AsJSON
	}
	serializer := serializers()[r.Custom != nil][mediaType]
	if serializer == nil {
		return nil, nil, answers.MediaTypeRefused("application/json, application/yaml")
	}
	object, gvk, err := serializer.Decode(body, &r.GVK, nil)
	if unknown, ok := runtime.AsStrictDecodingError(err); ok && object != nil {
		strict, err = unknown.Errors(), nil
	}
	switch {
	case err != nil:
		return nil, nil, err
	case gvk.GroupVersion() != r.GVK.GroupVersion():
		return nil, nil, apierrors.NewBadRequest(
			fmt.Sprintf("the API version in the data (%s) does not match the expected API version (%s)",
				gvk.GroupVersion(), r.GVK.GroupVersion()))
	case gvk.Kind != r.GVK.Kind && r.Custom == nil:
		return nil, nil, apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s",
			gvk.Kind, r.GVK.Version, r.GVK.Kind))
	}
	if r.Custom == nil {
		u, err = r.toUnstructured(object)
		return u, strict, err
	}
	u = object.(*unstructured.Unstructured)
	unknown, err := r.coerce(u)
	for _, path := range unknown {
		strict = append(strict, fmt.Errorf("unknown field %q", path))
	}
	return u, strict, err
}

// Normalize converts an object that an apply has merged to its stored form.
func (r *Resource) Normalize(u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if r.Custom != nil { // undeclared fields were refused, and null is not a valid value
		defaulting.Default(u.Object, r.Custom.Structural)
		return u, nil
	}
	object, err := builtinTypes().New(r.GVK)
	if err != nil {
		return nil, err
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, object); err != nil {
		return nil, err
	}
	return r.toUnstructured(object)
}

// MergeStrategically merges a strategic merge patch into a built-in object, both as JSON.
func (r *Resource) MergeStrategically(object, patch []byte) ([]byte, error) {
	typed, err := builtinTypes().New(r.GVK)
	if err != nil {
		return nil, err
	}
	return strategicpatch.StrategicMergePatch(object, patch, typed)
}

// Blank returns an empty object; one of a built-in kind has the fields that its Go type never omits.
func (r *Resource) Blank() (*unstructured.Unstructured, error) {
	if r.Custom != nil {
		return Blank(r.GVK), nil
	}
	object, err := builtinTypes().New(r.GVK)
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

// toUnstructured returns a built-in object with the defaults in its schema.
func (r *Resource) toUnstructured(object runtime.Object) (*unstructured.Unstructured, error) {
	if r.GVR == DefinitionsResource {
		builtinTypes().Default(object)
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, err
	}
	s, err := r.ReadSchema()
	if err != nil {
		return nil, err
	}
	offline.FillDefaults(content, s)
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(r.GVK)
	switch r.GVK.GroupKind() {
	case schema.GroupKind{Kind: "Secret"}:
		normalizeSecret(content)
	case schema.GroupKind{Kind: "Service"}:
		normalizeService(content)
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

// normalizeService sets the default target of each port, which its Go type would write as 0.
func normalizeService(content map[string]any) {
	ports, _, _ := unstructured.NestedFieldNoCopy(content, "spec", "ports")
	list, _ := ports.([]any)
	for _, item := range list {
		port, _ := item.(map[string]any)
		if target := port["targetPort"]; target == int64(0) || target == "" {
			port["targetPort"] = port["port"]
		}
	}
}

// normalizeSecret moves stringData to data, and sets the default type.
func normalizeSecret(content map[string]any) {
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
