package compile

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/desired"
	"github.com/corollary-dev/corollary/pkg/operator/marks"
	"github.com/corollary-dev/corollary/pkg/status"
)

// Options are what One knows besides the config.
type Options struct {
	// Kinds knows schema and scope of the kinds that the config names. A kind that it does not know is compiled untyped.
	Kinds kinds.Source
	// Version is the API server's, for the CEL functions that it has; nil: those of this library.
	Version *version.Version
	// Live is true if the pipeline runs against the API server that Kinds asks: what needs a kind that is not served, or
	// that the API server could not be asked about, waits. The upstream's kind must be known all the same.
	Live bool
	// Deletions is true for a config that was cut down to what deletions depend on (load.File.ForDeletion): the pipeline
	// decides about upstreams that are being deleted, and about no others.
	Deletions bool
}

// lookUp asks the source; an unknown kind counts as a namespaced one without a schema.
func lookUp(o Options, apiVersion, kind string) (*kinds.Kind, error) {
	gvk := schema.FromAPIVersionAndKind(apiVersion, kind)
	k, err := o.Kinds.Kind(gvk)
	switch {
	case err != nil && o.Live:
		return &kinds.Kind{GVK: gvk, Namespaced: true, Missing: err}, nil
	case errors.Is(err, kinds.ErrUnknown):
		return &kinds.Kind{GVK: gvk, Namespaced: true}, nil
	}
	return k, err
}

func lookUpKinds(c *compilation, o Options) error {
	op := &c.file.Operator
	up, err := desired.RowKind(), error(nil)
	if op.Source == nil {
		up, err = lookUp(o, op.Watch.APIVersion, op.Watch.Kind)
	}
	if err != nil {
		return err
	}
	if up.Missing != nil && !errors.Is(up.Missing, kinds.ErrUnknown) {
		return up.Missing
	}
	c.p.Upstream = *up
	for i := range op.Downstreams {
		cfg := &op.Downstreams[i]
		kind, err := lookUp(o, cfg.APIVersion, cfg.Kind)
		if err != nil {
			return err
		}
		d := &operator.Downstream{Index: i, Name: cfg.Name, Config: cfg, Kind: *kind}
		if d.OwnsFields() {
			d.HashPrefix = marks.FieldsHashPrefix
		}
		c.p.addDownstream(d)
	}
	for i := range op.Inputs {
		cfg := &op.Inputs[i]
		kind, err := desired.InputRowKind(), error(nil)
		if cfg.SQL == nil {
			kind, err = lookUp(o, cfg.APIVersion, cfg.Kind)
		}
		if err != nil {
			return err
		}
		c.p.Inputs = append(c.p.Inputs, &desired.InputSource{Index: i, Name: cfg.Name, Config: cfg, Kind: *kind})
	}
	if c.p.StatusEnabled() {
		c.p.Storable = status.Probe(up.Schema)
		checkSeveralStored(c)
		c.p.StoresBaseline = c.p.Storable.StoresItem(c.file.Operator.Status.Downstreams, "baseline")
	}
	return lookUpBefore(c, o)
}

// checkSeveralStored refuses a list of downstreams that takes one item for each name where a downstream has several
// objects.
func checkSeveralStored(c *compilation) {
	path := c.file.Operator.Status.Downstreams
	keys := c.p.Storable.KeyedBy(path)
	if len(keys) == 0 || slices.Contains(keys, "objectName") ||
		!slices.ContainsFunc(c.p.Settings.Downstreams, (*operator.Downstream).Several) {
		return
	}
	c.fail("status.downstreams",
		"set x-kubernetes-list-type: atomic there in the CustomResourceDefinition; corollary generate crd-status prints it",
		"%s stores one item for each %s, and a downstream with forEach has one for each object", path,
		strings.Join(keys, " and "))
}

// checkWatched holds what is watched to the scope of its kind, where that is known.
func checkWatched(c *compilation) {
	up := c.p.Upstream
	if up.GVR.Empty() || up.Namespaced {
		return
	}
	refuse := func(key string) {
		c.fail(key, "leave it out; labelSelector chooses among objects of the cluster",
			"a cluster-scoped %s is in no namespace", up.GVK.Kind)
	}
	if len(c.file.Watch.Namespaces) > 0 {
		refuse("watch.namespaces")
	}
	if c.file.Watch.NamespaceSelector != nil {
		refuse("watch.namespaceSelector")
	}
}

// checkStatusSubresource warns of a kind that has no place for the status which the config writes, or one that is
// everybody's.
func checkStatusSubresource(c *compilation) {
	up := c.p.Upstream
	if up.GVR.Empty() || up.HasStatus || !c.p.StatusEnabled() {
		return
	}
	problem, fix := fmt.Sprintf("%s has no status subresource: whoever may edit one may write its status", up.GVK.Kind),
		"add the subresource to the CustomResourceDefinition (subresources: {status: {}})"
	if kinds.IsBuiltin(up.GVK.GroupKind()) {
		problem, fix = fmt.Sprintf("%s is a built-in kind without a status", up.GVK.Kind), "set status.enabled: false"
	}
	c.warn(*c.file.Errorf("status", fix, "%s", problem))
}

// lookUpBefore finds the kind of deletion.before.
func lookUpBefore(c *compilation, o Options) error {
	b := c.file.Operator.Deletion.Before
	if b == nil {
		return nil
	}
	kind, err := lookUp(o, b.APIVersion, b.Kind)
	if err != nil {
		return err
	}
	c.p.before = &downstream{Downstream: &desired.Downstream{Downstream: &operator.Downstream{
		Index: operator.BeforeIndex, Name: operator.BeforeName, Kind: *kind, HashPrefix: marks.BeforeHashPrefix,
		Config: &config.Downstream{Name: operator.BeforeName, APIVersion: b.APIVersion, Kind: b.Kind, Template: b.Template,
			TargetNamespaces: b.TargetNamespaces,
			AdoptionPolicy:   config.AdoptNever, UpdatePolicy: config.UpdateCreateOnly, DeletionPolicy: config.DeletionDelete},
	}}}
	c.p.Before = &desired.Before{Config: b, Object: c.p.before.Downstream}
	return nil
}

// checkScope holds the config to what owner references can do, once the scope of both kinds is known: what they cannot
// clean up needs the owner annotation and the finalizer.
func checkScope(c *compilation, d *downstream, path string) {
	up, conv := c.p.Upstream, c.file.Operator.Conventions
	if c.p.Upstream.GVR.Empty() || d.Kind.GVR.Empty() {
		return
	}
	switch {
	case up.Namespaced && !d.Kind.Namespaced:
		if conv.Owner.Annotation == "" {
			c.failOnce("conventions.owner", "add owner.annotation: a key of your domain",
				"a namespaced %s cannot own a cluster-scoped %s by reference", up.GVK.Kind, d.Kind.GVK.Kind)
		}
		if conv.Finalizer == "" {
			c.failOnce("conventions", "add finalizer: a name of your domain",
				"nothing but a finalizer can clean up a cluster-scoped %s after a namespaced %s", d.Kind.GVK.Kind, up.GVK.Kind)
		}
	case !up.Namespaced && d.Kind.Namespaced && d.Config.TargetNamespaces.From == config.NamespacesSame &&
		up.GVK.GroupKind() != (schema.GroupKind{Kind: "Namespace"}):
		c.fail(path+".targetNamespaces", "set from: List with names, or from: Any",
			"a cluster-scoped %s has no namespace that a %s could share", up.GVK.Kind, d.Kind.GVK.Kind)
	}
}
