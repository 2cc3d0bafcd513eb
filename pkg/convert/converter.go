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
	Kind     schema.GroupKind
	Hub      *kinds.Version
	Spokes   map[string]*Spoke
	Preserve string // the annotation; empty without
	// NeedsMetadata: something reads or changes them.
	NeedsMetadata bool
	// Metadata are the labels and annotations that rules and expressions name.
	Metadata []fieldpath.Path
	// Untried are the expressions that read metadata which made objects do not have.
	Untried []string
	// Literals are the strings and whole numbers that rules and expressions have: what they make a difference for.
	Literals []any
	// stored is the version in which objects are stored; empty where that is not known.
	stored string
	// Namespaced: the objects are in namespaces.
	Namespaced bool
}

// None converts to a version and back as the API server does without a webhook: it drops fields that the target does
// not declare.
func None(kind schema.GroupKind, version *kinds.Version, others []*kinds.Version) *Converter {
	c := &Converter{Kind: kind, Hub: version, Spokes: map[string]*Spoke{}}
	for _, v := range others {
		if v.Name != version.Name {
			c.Spokes[v.Name] = &Spoke{Version: v, Exact: true}
		}
	}
	return c
}

// Spoke is one version that converts to the hub and back.
type Spoke struct {
	Version        *kinds.Version
	toHub, fromHub []operation
	// Exact: nothing can get lost, by the construction of the rules.
	Exact bool
	// Lost are the fields whose loss is acknowledged, in either version.
	Lost []fieldpath.Path
	// Floats are the expressions that compute with floating-point numbers.
	Floats []FloatUse
}

// Versions lists the versions that objects can be converted between.
func (c *Converter) Versions() []string {
	return slices.Sorted(maps.Keys(c.Spokes))
}

// Has reports whether objects of a version can be converted.
func (c *Converter) Has(version string) bool {
	return version == c.Hub.Name || c.Spokes[version] != nil
}

// Convert converts an object to a version, in place: it must belong to the caller. The object has the fields and
// defaults that the API server gives it in the version that it names. Where it lacks fields that are required or have a
// default there, what is computed from them is not set. After an error the object is of no use.
func (c *Converter) Convert(ctx context.Context, obj map[string]any, to string) (err error) {
	defer Recovered(&err)
	from, err := c.VersionOf(obj)
	if err != nil {
		return err
	}
	if err := c.Knows(to); err != nil {
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
	if from == c.Hub.Name || to == c.Hub.Name {
		return []string{to}
	}
	return []string{c.Hub.Name, to}
}

// hop is one conversion between a spoke and the hub.
func (c *Converter) hop(obj map[string]any, from, to string, p *pass) error {
	s := c.Spokes[from]
	if s == nil {
		s = c.Spokes[to]
	}
	if c.Preserve == "" || s.Exact {
		return c.carry(obj, from, to, p)
	}
	return c.preserving(obj, from, to, p)
}

var errMetadata = errors.New(
	"the rules make labels or annotations that the API server does not accept: labels are at most 63 letters, " +
		"digits, '-', '_' and '.', and both are strings")

// carry applies the rules alone.
func (c *Converter) carry(obj map[string]any, from, to string, p *pass) error {
	p.source = c.Version(from)
	operations := c.operations(from, to)
	if err := carryOut(operations, obj, p); err != nil {
		return err
	}
	if len(c.Metadata) > 0 && !kinds.AcceptsMetadata(obj) {
		return errMetadata
	}
	obj["apiVersion"] = schema.GroupVersion{Group: c.Kind.Group, Version: to}.String()
	// a server-side apply fails where what a webhook returns has fields that the version does not declare
	c.Version(to).Prune(obj)
	return nil
}

func (c *Converter) operations(from, to string) []operation {
	if from == c.Hub.Name {
		return c.Spokes[to].fromHub
	}
	return c.Spokes[from].toHub
}

// Trace carries out the operations of a conversion on an object with something else in the place of its values: eval is
// called in place of programs. What is done to objects beside that is left out, such as dropping undeclared fields.
func (c *Converter) Trace(ctx context.Context, obj map[string]any, from, to string, eval evaluation) error {
	for _, next := range c.route(from, to) {
		p := &pass{ctx: ctx, eval: eval, source: c.Version(from)}
		if err := carryOut(c.operations(from, next), obj, p); err != nil {
			return fmt.Errorf("converting from %s to %s: %w", from, next, err)
		}
		from = next
	}
	return nil
}

// Version returns a version by its name.
func (c *Converter) Version(name string) *kinds.Version {
	if name == c.Hub.Name {
		return c.Hub
	}
	return c.Spokes[name].Version
}

// Knows returns an error for a version that the conversion does not have.
func (c *Converter) Knows(version string) error {
	if version != c.Hub.Name && c.Spokes[version] == nil {
		return fmt.Errorf("version %s of %s is not in the conversion: it has %s, and the hub %s", version,
			c.Kind, c.Versions(), c.Hub.Name)
	}
	return nil
}

// VersionOf is the version that an object is written in; an error if the conversion does not have it.
func (c *Converter) VersionOf(obj map[string]any) (string, error) {
	text, _ := obj["apiVersion"].(string)
	gv, err := schema.ParseGroupVersion(text)
	if err != nil || gv.Group != c.Kind.Group {
		return "", fmt.Errorf("apiVersion %q: it is not one of %s", text, c.Kind.Group)
	}
	if kind, _ := obj["kind"].(string); kind != c.Kind.Kind {
		return "", fmt.Errorf("kind %q: it is not %s", kind, c.Kind.Kind)
	}
	return gv.Version, c.Knows(gv.Version)
}

// Recovered is deferred where a panic must not end the process: the other objects of a review, and whoever asks for
// them, are not concerned.
func Recovered(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("internal error (recovered from a panic): %v: please report it with the object and the conversion",
			p)
	}
}
