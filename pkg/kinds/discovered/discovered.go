// Package discovered finds kinds by discovery and OpenAPI of an API server, and keeps them.
package discovered

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"
	apiversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/apiserver/pkg/cel/openapi/resolver"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/corollary-dev/corollary/pkg/kinds"
)

// Cluster is a Source that reads discovery and OpenAPI v3 of an API server, which every authenticated user may
// (system:discovery). It caches kinds until Invalidate, but neither errors nor missing schemas. It is safe for
// concurrent use.
type Cluster struct {
	discovery *discovery.DiscoveryClient
	answers   answers

	mu    sync.Mutex
	kinds map[schema.GroupVersionKind]*kinds.Kind
	// epoch counts the calls of Invalidate, so that a response that was requested before is not cached.
	epoch uint64
}

// New returns a Cluster for the API server of the config. It sends no request; the error is about the config.
func New(cfg *rest.Config) (*Cluster, error) {
	client, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("making a discovery client: %w", err)
	}
	return &Cluster{discovery: client, kinds: map[schema.GroupVersionKind]*kinds.Kind{}}, nil
}

// Kind implements Source. The first call for a kind sends one discovery request and one or two OpenAPI requests; later
// ones none. Calls for several kinds at about the same time share these requests, but never one that was sent before
// Invalidate. An *UnknownError means that the API server does not serve the kind, which takes up to three more
// requests; any other error means that a request failed.
func (c *Cluster) Kind(gvk schema.GroupVersionKind) (*kinds.Kind, error) {
	c.mu.Lock()
	k, epoch := c.kinds[gvk], c.epoch
	c.mu.Unlock()
	if k != nil {
		return k, nil
	}
	k, err := c.lookUp(gvk)
	if err != nil {
		return nil, err
	}
	if k.Schema, k.SchemaErr, err = c.openapi(gvk); err != nil {
		return nil, err
	}
	if k.SchemaErr == nil {
		c.keep(k, epoch)
	}
	return k, nil
}

// lookUp is Served by a response that other calls may have requested, as long as the kind is in it.
func (c *Cluster) lookUp(gvk schema.GroupVersionKind) (*kinds.Kind, error) {
	request := func() (any, error) { return c.resources(context.Background(), gvk.GroupVersion()) }
	found, joined := c.answers.get(resourcesKey(gvk.GroupVersion()), nil, request)
	if joined && (found.err != nil || indexOf(gvk.Kind, found.value.(*metav1.APIResourceList)) < 0) {
		found, _ = c.answers.get(resourcesKey(gvk.GroupVersion()), found, request)
	}
	if found.err != nil {
		return nil, found.err
	}
	return c.kindIn(context.Background(), gvk, found.value.(*metav1.APIResourceList))
}

const indexKey = "OpenAPI"

func resourcesKey(gv schema.GroupVersion) string { return "resources of " + gv.String() }

// keep caches a kind, unless Invalidate was called since it was requested.
func (c *Cluster) keep(k *kinds.Kind, epoch uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.epoch == epoch {
		c.kinds[k.GVK] = k
	}
}

// Invalidate removes the given kinds from the cache, or all without an argument. Kinds that were returned before do not
// change.
func (c *Cluster) Invalidate(gvks ...schema.GroupVersionKind) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.epoch++
	if len(gvks) == 0 {
		clear(c.kinds)
		c.answers.drop()
	}
	for _, gvk := range gvks {
		delete(c.kinds, gvk)
		c.answers.drop(resourcesKey(gvk.GroupVersion()), indexKey)
	}
}

// Version returns the version of the API server. Calls at about the same time share a request, as those of Kind do.
func (c *Cluster) Version() (*version.Version, error) {
	found, _ := c.answers.get("version", nil, func() (any, error) { return c.discovery.ServerVersion() })
	if found.err != nil {
		return nil, fmt.Errorf("asking for the version of the API server: %w", found.err)
	}
	v, err := version.ParseGeneric(found.value.(*apiversion.Info).GitVersion)
	if err != nil {
		return nil, fmt.Errorf("reading the version of the API server: %w", err)
	}
	return v, nil
}

// Served requests the kind from the API server, not from the cache, and returns it without its schema. The error is as
// for Kind. It sends one request if the kind is served, and up to three more, for its group and its definition, if not.
func (c *Cluster) Served(ctx context.Context, gvk schema.GroupVersionKind) (*kinds.Kind, error) {
	list, err := c.resources(ctx, gvk.GroupVersion())
	if err != nil {
		return nil, err
	}
	return c.kindIn(ctx, gvk, list)
}

// kindIn is a kind in the resources of its group and version.
func (c *Cluster) kindIn(
	ctx context.Context, gvk schema.GroupVersionKind, list *metav1.APIResourceList,
) (*kinds.Kind, error) {
	i := indexOf(gvk.Kind, list)
	if i < 0 {
		return nil, c.unknown(ctx, gvk, list)
	}
	resource := list.APIResources[i]
	return &kinds.Kind{
		GVK:        gvk,
		GVR:        gvk.GroupVersion().WithResource(resource.Name),
		Namespaced: resource.Namespaced,
		HasStatus: slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool {
			return r.Name == resource.Name+"/status"
		}),
	}, nil
}

// resources returns the resources of a group and version; nothing if it is not served.
func (c *Cluster) resources(ctx context.Context, gv schema.GroupVersion) (*metav1.APIResourceList, error) {
	list, err := c.discovery.ServerResourcesForGroupVersionWithContext(ctx, gv.String())
	switch {
	case apierrors.IsNotFound(err):
		return &metav1.APIResourceList{}, nil
	case err != nil:
		return nil, fmt.Errorf("asking the API server for the kinds of %s: %w", gv, err)
	}
	return list, nil
}

func indexOf(kind string, list *metav1.APIResourceList) int {
	return slices.IndexFunc(list.APIResources, func(r metav1.APIResource) bool {
		return r.Kind == kind && !strings.Contains(r.Name, "/")
	})
}

// unknown returns the error for a kind that is not in list, the resources of its group and version; another error if a
// request fails.
func (c *Cluster) unknown(ctx context.Context, gvk schema.GroupVersionKind, list *metav1.APIResourceList) error {
	e := &kinds.UnknownError{GVK: gvk, Where: "the API server"}
	versions, err := c.versions(ctx, gvk.Group)
	if err != nil {
		return err
	}
	for _, gv := range versions {
		if gv == gvk.GroupVersion() {
			continue
		}
		other, err := c.resources(ctx, gv)
		if err != nil {
			return err
		}
		if indexOf(gvk.Kind, other) >= 0 {
			e.Elsewhere = append(e.Elsewhere, gv.String())
		}
	}
	if len(e.Elsewhere) > 0 {
		e.Fix = "it serves the kind in " + strings.Join(e.Elsewhere, ", ") +
			": write that apiVersion, or have the CustomResourceDefinition serve " + gvk.Version
		return e
	}
	if !kinds.IsBuiltin(gvk.GroupKind()) {
		if e.Definition, e.Hidden, err = c.definition(ctx, gvk.GroupKind()); err != nil {
			return err
		}
	}
	if e.Definition != "" {
		e.Fix = fmt.Sprintf(
			"its CustomResourceDefinition %s serves it in no version: set served: true for %s, or see its conditions",
			e.Definition, gvk.Version)
		return e
	}
	e.Fix = "install its CustomResourceDefinition"
	if near := kinds.Nearby(gvk, servedKinds(gvk.GroupVersion(), list)); near != "" {
		e.Fix = near + " If not, " + e.Fix
	}
	if e.Hidden {
		e.Fix += "; it is not known whether one exists that serves no version: grant list on " +
			"customresourcedefinitions.apiextensions.k8s.io"
	}
	return e
}

// versions returns the served versions of a group; none if the group does not exist.
func (c *Cluster) versions(ctx context.Context, group string) ([]schema.GroupVersion, error) {
	if group == "" { // it will always have one version
		return nil, nil
	}
	var found metav1.APIGroup
	err := c.discovery.RESTClient().Get().AbsPath("/apis/" + group).Do(ctx).Into(&found)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("asking the API server for the versions of %s: %w", group, err)
	}
	versions := make([]schema.GroupVersion, len(found.Versions))
	for i, v := range found.Versions {
		versions[i] = schema.GroupVersion{Group: group, Version: v.Version}
	}
	return versions, nil
}

// servedKinds lists the kinds that have a resource of their own.
func servedKinds(gv schema.GroupVersion, list *metav1.APIResourceList) []schema.GroupVersionKind {
	var found []schema.GroupVersionKind
	for _, r := range list.APIResources {
		if !strings.Contains(r.Name, "/") {
			found = append(found, gv.WithKind(r.Kind))
		}
	}
	return found
}

// openapi reads the kind's schema. A missing schema is not an error, but the second result says why: OpenAPI is
// published a moment after a new kind is served, some aggregated API servers publish none, and some clusters remove the
// right to read it.
func (c *Cluster) openapi(gvk schema.GroupVersionKind) (found *spec.Schema, missing, err error) {
	found, err = c.resolve(gvk)
	switch {
	case err == nil:
		return found, nil, nil
	case errors.Is(err, resolver.ErrSchemaNotFound), apierrors.IsNotFound(err),
		apierrors.IsForbidden(err), apierrors.IsNotAcceptable(err):
		return nil, fmt.Errorf("the API server shows no OpenAPI schema of %s %s: %w", gvk.GroupVersion(), gvk.Kind, err), nil
	}
	return nil, nil, fmt.Errorf("asking the API server for the schema of %s %s: %w", gvk.GroupVersion(), gvk.Kind, err)
}

// ServedVersions implements VersionSource. It sends one request, and one for each version of the group.
func (c *Cluster) ServedVersions(
	ctx context.Context, resource schema.GroupResource,
) (versions []string, known bool, err error) {
	all, err := c.versions(ctx, resource.Group)
	if err != nil {
		return nil, false, err
	}
	for _, gv := range all {
		list, err := c.resources(ctx, gv)
		if err != nil {
			return nil, false, err
		}
		if slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == resource.Resource }) {
			versions = append(versions, gv.Version)
		}
	}
	slices.Sort(versions)
	return versions, true, nil
}
