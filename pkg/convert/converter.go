package convert

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/rules"
)

// Converter converts the objects of one kind between its versions. Safe for concurrent use.
type Converter struct {
	kind     schema.GroupKind
	hub      *kinds.Version
	spokes   map[string]*spoke
	preserve string // the annotation; empty without
	// needsMetadata: something reads or changes them.
	needsMetadata bool
	// metadata are the labels and annotations that rules and expressions name.
	metadata []fieldpath.Path
	// untried are the expressions that read metadata which made objects do not have.
	untried []string
	// literals are the strings and whole numbers that rules and expressions have: what they make a difference for.
	literals []any
	// stored is the version in which objects are stored; empty where that is not known.
	stored string
	// namespaced: the objects are in namespaces.
	namespaced bool
}

// spoke is one version that converts to the hub and back.
type spoke struct {
	version        *kinds.Version
	toHub, fromHub []operation
	// exact: nothing can get lost, by the construction of the rules.
	exact bool
	// lost are the fields whose loss is acknowledged, in either version.
	lost []fieldpath.Path
	// floats are the expressions that compute with floating-point numbers.
	floats []floatUse
}

// Versions lists the versions that objects can be converted between.
func (c *Converter) Versions() []string {
	return slices.Sorted(maps.Keys(c.spokes))
}

// Has reports whether objects of a version can be converted.
func (c *Converter) Has(version string) bool {
	return version == c.hub.Name || c.spokes[version] != nil
}

// Convert converts an object to a version, in place: it must belong to the caller. The object has the fields and defaults that the API
// server gives it in the version that it names. Where it lacks fields that are required or have a default there, what is computed from
// them is not set. After an error the object is of no use.
func (c *Converter) Convert(ctx context.Context, obj map[string]any, to string) (err error) {
	defer recovered(&err)
	from, err := c.versionOf(obj)
	if err != nil {
		return err
	}
	if err := c.knows(to); err != nil {
		return err
	}
	if _, ok := obj["metadata"].(map[string]any); !ok {
		return errors.New("metadata is missing: an object without it cannot be converted")
	}
	if from == to {
		return nil
	}
	p := &pass{ctx: ctx, budget: rules.NewBudget(ctx)}
	for _, next := range c.route(from, to) {
		if err := c.hop(obj, from, next, p); err != nil {
			return fmt.Errorf("converting from %s to %s: %w", from, next, err)
		}
		from = next
	}
	return nil
}

// route are the versions to go through.
func (c *Converter) route(from, to string) []string {
	if from == c.hub.Name || to == c.hub.Name {
		return []string{to}
	}
	return []string{c.hub.Name, to}
}

// hop is one conversion between a spoke and the hub.
func (c *Converter) hop(obj map[string]any, from, to string, p *pass) error {
	s := c.spokes[from]
	if s == nil {
		s = c.spokes[to]
	}
	if c.preserve == "" || s.exact {
		return c.carry(obj, from, to, p)
	}
	return c.preserving(obj, from, to, p)
}

var errMetadata = errors.New("the rules make labels or annotations that the API server does not accept: labels are at most 63 letters, " +
	"digits, '-', '_' and '.', and both are strings")

// carry applies the rules alone.
func (c *Converter) carry(obj map[string]any, from, to string, p *pass) error {
	p.source = c.version(from)
	operations := c.operations(from, to)
	if err := carryOut(operations, obj, p); err != nil {
		return err
	}
	if len(c.metadata) > 0 && !acceptsMetadata(obj) {
		return errMetadata
	}
	obj["apiVersion"] = schema.GroupVersion{Group: c.kind.Group, Version: to}.String()
	c.version(to).Prune(obj) // a server-side apply fails where what a webhook returns has fields that the version does not declare
	return nil
}

func (c *Converter) operations(from, to string) []operation {
	if from == c.hub.Name {
		return c.spokes[to].fromHub
	}
	return c.spokes[from].toHub
}

// version returns a version by its name.
func (c *Converter) version(name string) *kinds.Version {
	if name == c.hub.Name {
		return c.hub
	}
	return c.spokes[name].version
}

func (c *Converter) knows(version string) error {
	if version != c.hub.Name && c.spokes[version] == nil {
		return fmt.Errorf("version %s of %s is not in the conversion: it has %s, and the hub %s", version, c.kind, c.Versions(), c.hub.Name)
	}
	return nil
}

func (c *Converter) versionOf(obj map[string]any) (string, error) {
	text, _ := obj["apiVersion"].(string)
	gv, err := schema.ParseGroupVersion(text)
	if err != nil || gv.Group != c.kind.Group {
		return "", fmt.Errorf("apiVersion %q: it is not one of %s", text, c.kind.Group)
	}
	if kind, _ := obj["kind"].(string); kind != c.kind.Kind {
		return "", fmt.Errorf("kind %q: it is not %s", kind, c.kind.Kind)
	}
	return gv.Version, c.knows(gv.Version)
}

// recovered is deferred where a panic must not end the process: the other objects of a review, and whoever asks for them, are not
// concerned.
func recovered(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("internal error (recovered from a panic): %v: please report it with the object and the conversion", p)
	}
}
