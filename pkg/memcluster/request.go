package memcluster

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/memcluster/answers"
	"github.com/corollary-dev/corollary/pkg/memcluster/resource"
	"github.com/corollary-dev/corollary/pkg/memcluster/store"
)

// call is a request for objects of one resource.
type call struct {
	http      *http.Request
	resource  *resource.Resource
	namespace string // "" for a cluster-scoped resource, and for all namespaces
	name      string // "" for the collection
	sub       string // status or ""
	query     url.Values
	body      []byte
}

func (c *call) at() types.NamespacedName {
	return types.NamespacedName{Namespace: c.namespace, Name: c.name}
}

func (c *call) groupResource() schema.GroupResource { return c.resource.GVR.GroupResource() }

// serve handles a request.
func (c *Cluster) serve(request *http.Request, body []byte) *http.Response {
	c.store.Lock()
	defer c.store.Unlock()
	if path := strings.Trim(request.URL.Path, "/"); request.Method == http.MethodGet {
		if document, contentType := c.catalog.Describe(path, request.Header.Get("Accept")); document != nil {
			return answers.Response(request, http.StatusOK, contentType, document)
		}
	}
	call, err := c.parse(request, body)
	switch {
	case err != nil:
		return answers.Failure(request, err)
	case call == nil:
		return answers.Response(request, http.StatusNotFound, "text/plain; charset=utf-8", []byte("404 page not found\n"))
	}
	form, err := call.form()
	if err != nil {
		return answers.Failure(request, err)
	}
	answer, code, err := c.dispatch(call, form)
	if err != nil {
		return answers.Failure(request, err)
	}
	if call.resource.GVR == resource.DefinitionsResource && request.Method != http.MethodGet {
		c.controlDefinition(call.name)
	}
	if watch, ok := answer.(*store.Stream); ok {
		return store.WatchResponse(request, watch)
	}
	if answer, err = form.of(answer); err != nil {
		return answers.Failure(request, err)
	}
	return answers.Response(request, code, answers.AsJSON, answers.Encode(answer))
}

// parse parses the path of a request; nil if nothing is served there.
func (c *Cluster) parse(request *http.Request, body []byte) (*call, error) {
	gv, parts := splitPath(request.URL.Path)
	if len(parts) == 0 {
		return nil, nil
	}
	if parts[0] == "watch" {
		return nil, answers.Unsupported("the path /watch/: set the parameter watch")
	}
	call := &call{http: request, query: request.URL.Query(), body: body}
	if parts[0] == "namespaces" && len(parts) > 2 && (gv.Group != "" || !subresources[parts[2]]) {
		call.namespace, parts = parts[1], parts[2:]
	}
	call.resource = c.catalog.Resources[gv.WithResource(parts[0])]
	if call.resource == nil || len(parts) > 3 {
		return nil, nil
	}
	if len(parts) > 1 {
		call.name = parts[1]
	}
	if len(parts) > 2 {
		call.sub = parts[2]
	}
	if call.resource.Namespaced != (call.namespace != "") && (call.name != "" || call.namespace != "") {
		return nil, nil
	}
	return call, nil
}

// splitPath returns the group and version at the start of a path, and the rest; nothing for other paths.
func splitPath(path string) (schema.GroupVersion, []string) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case len(parts) > 2 && parts[0] == "api":
		return schema.GroupVersion{Version: parts[1]}, parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		return schema.GroupVersion{Group: parts[1], Version: parts[2]}, parts[3:]
	}
	return schema.GroupVersion{}, nil
}

// subresources are the subresources of a Namespace: in /api/v1/namespaces/NAME/status, status is not a resource in the
// namespace.
var subresources = map[string]bool{"status": true, "finalize": true}

// dispatch handles a request, and returns an object, a list, or a stream.
func (c *Cluster) dispatch(call *call, form *form) (any, int, error) {
	if err := call.checkServed(); err != nil {
		return nil, 0, err
	}
	what := "object " + call.http.Method
	if call.name == "" {
		what = "collection " + call.http.Method
	}
	switch what {
	case "collection GET":
		return c.list(call, form)
	case "collection POST":
		if call.resource.Namespaced == (call.namespace != "") {
			return c.create(call)
		}
	case "collection DELETE":
		return c.deleteAll(call)
	case "object GET":
		u, err := c.live(call)
		return u, http.StatusOK, err
	case "object PUT":
		return c.update(call)
	case "object PATCH":
		return c.patch(call)
	case "object DELETE":
		if call.sub == "" {
			return c.delete(call)
		}
	}
	return nil, 0, answers.Refusal(http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed,
		"the server does not allow this method on the requested resource", &metav1.StatusDetails{})
}

// checkServed returns an error for a request that is not supported here, or that no API server serves.
func (c *call) checkServed() error {
	switch {
	case c.resource.IsReview() && (!c.resource.AsksForRights() || c.http.Method != http.MethodPost):
		return answers.Unsupported("authentication and authorization")
	case c.sub == "scale" || c.sub != "" && c.sub != "status" && c.resource.Custom == nil:
		return answers.Unsupported("the subresource " + c.sub)
	case c.sub != "" && (c.sub != "status" || !c.resource.HasStatus):
		return c.notServed()
	}
	return nil
}

// notServed returns the error for a subresource that a kind does not have.
func (c *call) notServed() error {
	if c.resource.Custom != nil {
		return apierrors.NewNotFound(c.groupResource(), c.name)
	}
	return answers.Refusal(http.StatusNotFound, metav1.StatusReasonNotFound,
		"the server could not find the requested resource",
		&metav1.StatusDetails{})
}

// options are the options of a write.
type options struct {
	dryRun, force bool
	manager       string
	validation    string
}

func (o options) isStrict() bool { return o.validation == metav1.FieldValidationStrict }

// options parses the parameters of a write as the API server does.
func (c *call) options(kind string, patch types.PatchType) (options, error) {
	q := c.query
	o := options{
		dryRun:     len(q["dryRun"]) > 0,
		force:      q.Get("force") == "true",
		manager:    q.Get("fieldManager"),
		validation: q.Get("fieldValidation"),
	}
	if o.validation == "" {
		o.validation = metav1.FieldValidationWarn
	}
	check := metav1.PatchOptions{DryRun: q["dryRun"], FieldManager: o.manager, FieldValidation: o.validation}
	if q.Has("force") {
		check.Force = &o.force
	}
	if kind != "PatchOptions" {
		check.Force, patch = nil, types.MergePatchType
	}
	if errs := validation.ValidatePatchOptions(&check, patch); len(errs) > 0 {
		return o, apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: kind}, "", errs)
	}
	if o.manager == "" {
		o.manager, _, _ = strings.Cut(c.http.UserAgent(), "/")
	}
	return o, nil
}

// checkNames checks that the body has the name and the namespace in the path.
func (c *call) checkNames(name, namespace string) error {
	switch {
	case namespace != c.namespace && c.resource.Namespaced:
		return apierrors.NewBadRequest(
			"the namespace of the provided object does not match the namespace sent on the request")
	case name == "":
		return apierrors.NewBadRequest(fmt.Sprintf(
			"the name of the object (%s based on URL) was undeterminable: name must be provided", c.name))
	case name != c.name:
		return apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)",
			name, c.name))
	}
	return nil
}

// read parses the options of a POST or PUT, which have that kind, and its body.
func (c *call) read(optionsKind string) (*unstructured.Unstructured, options, error) {
	o, err := c.options(optionsKind, "")
	if err != nil {
		return nil, o, err
	}
	u, err := c.resource.Decode(c.body, c.http.Header.Get("Content-Type"), o.isStrict())
	var known apierrors.APIStatus
	if err == nil || errors.As(err, &known) {
		return u, o, err
	}
	gvk := c.resource.GVK
	return nil, o, apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s: %v", gvk.Kind,
		gvk.Version, gvk.Kind, err))
}
