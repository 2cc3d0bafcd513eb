package compile

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/desired"
	"github.com/corollary-dev/corollary/pkg/operator/marks"
	"github.com/corollary-dev/corollary/pkg/status"
)

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

// checkSeveralStored refuses a list of downstreams that takes one item for each name where a downstream has several objects.
func checkSeveralStored(c *compilation) {
	path := c.file.Operator.Status.Downstreams
	keys := c.p.Storable.KeyedBy(path)
	if len(keys) == 0 || slices.Contains(keys, "objectName") || !slices.ContainsFunc(c.p.Settings.Downstreams, (*operator.Downstream).Several) {
		return
	}
	c.fail("status.downstreams", "set x-kubernetes-list-type: atomic there in the CustomResourceDefinition; corollary generate crd-status prints it",
		"%s stores one item for each %s, and a downstream with forEach has one for each object", path, strings.Join(keys, " and "))
}

// checkWatched holds what is watched to the scope of its kind, where that is known.
func checkWatched(c *compilation) {
	up := c.p.Upstream
	if up.GVR.Empty() || up.Namespaced {
		return
	}
	refuse := func(key string) {
		c.fail(key, "leave it out; labelSelector chooses among objects of the cluster", "a cluster-scoped %s is in no namespace", up.GVK.Kind)
	}
	if len(c.file.Watch.Namespaces) > 0 {
		refuse("watch.namespaces")
	}
	if c.file.Watch.NamespaceSelector != nil {
		refuse("watch.namespaceSelector")
	}
}

// checkStatusSubresource warns of a kind that has no place for the status which the config writes, or one that is everybody's.
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
