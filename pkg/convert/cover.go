package convert

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"

	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/kinds"
)

// cover is what the rules of a spoke say about the fields of one side: of the whole object, or of the items of a list.
type cover struct {
	schema  *structuralschema.Structural
	version *kinds.Version
	item    bool
	above   fieldpath.Path // of the list or map, for items
	entries map[string]*covered
	// reads are the paths that expressions read; whole: they read everything.
	reads [][]string
	whole bool
}

// covered is one field.
type covered struct {
	path  fieldpath.Path
	by    string
	other fieldpath.Path // of a pair, the path on the other side
	// items are the covers of both sides' items, for forEach.
	items *[2]*cover
	// changed: values change on the way, as the rule says.
	changed bool
}

const (
	coverLost     = "lost"
	coverDefault  = "default"
	coverComputed = "set"
)

// withMetadata adds to the schema of a version what a conversion may change of metadata: no CustomResourceDefinition
// declares that.
func withMetadata(s *structuralschema.Structural) *structuralschema.Structural {
	object := func() structuralschema.Structural {
		return structuralschema.Structural{Generic: structuralschema.Generic{Type: "object"}}
	}
	texts := object()
	texts.AdditionalProperties = &structuralschema.StructuralOrBool{
		Structural: &structuralschema.Structural{Generic: structuralschema.Generic{Type: "string"}},
	}
	metadata := object()
	metadata.Properties = map[string]structuralschema.Structural{"labels": texts, "annotations": texts}
	whole := *s
	whole.Properties = maps.Clone(s.Properties)
	if whole.Properties == nil {
		whole.Properties = map[string]structuralschema.Structural{}
	}
	whole.Properties["metadata"] = metadata
	return &whole
}

func newCover(s *structuralschema.Structural) *cover {
	return &cover{schema: s, entries: map[string]*covered{}}
}

// take notes that a rule is about a field.
func (c *cover) take(p fieldpath.Path, by string) { c.entries[p.String()] = &covered{path: p, by: by} }

// pair notes one side of a rule that has two. A field can be in one rule only.
func (c *cover) pair(p, other fieldpath.Path, by string) error {
	for _, key := range slices.Sorted(maps.Keys(c.entries)) {
		if taken := c.entries[key]; taken.path.Overlaps(p) {
			return fmt.Errorf("%s is in another rule already, as %s", p, key)
		}
	}
	c.entries[p.String()] = &covered{path: p, by: by, other: other}
	return nil
}

func (c *cover) readBy(paths [][]string, whole bool) {
	c.reads, c.whole = append(c.reads, paths...), c.whole || whole
}

// isRead reports whether an expression reads a field, or something in it.
func (c *cover) isRead(p fieldpath.Path) bool {
	return c.whole || slices.ContainsFunc(c.reads, func(read []string) bool { return fieldpath.New(read...).Overlaps(p) })
}

// entry is what covers a field; below reports whether something covers fields in it.
func (c *cover) entry(p fieldpath.Path) (found *covered, below bool) {
	if found = c.entries[p.String()]; found != nil {
		return found, false
	}
	for _, e := range c.entries {
		below = below || e.path.HasPrefix(p)
	}
	return nil, below
}

// comparison finds what no rule says anything about, though the versions differ there.
type comparison struct {
	*compiler
	at        string
	names     [2]string
	preserves bool
	exact     bool
}

func (c *comparison) compare(spoke, hub *cover, v, h *kinds.Version) {
	c.names = [2]string{v.Name, h.Name}
	c.sides(spoke, hub, nil)
}

// sides compares two objects: in place of a path that both have, the covers say what belongs together.
func (c *comparison) sides(spoke, hub *cover, above fieldpath.Path) {
	c.walk(spoke, hub, 0, nil, spoke.schema, hub.schema, above)
	c.walk(hub, spoke, 1, nil, hub.schema, spoke.schema, above)
}

// walk goes through the fields of one side that has an object at a path, which the other side may not have.
func (c *comparison) walk(
	own, other *cover, side int, at fieldpath.Path, s, o *structuralschema.Structural, above fieldpath.Path,
) {
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		p := at.Child(name)
		if len(above) == 0 && !own.item && len(p) == 1 && kinds.IsHead(name) {
			continue
		}
		mine, theirs := kinds.Member(s, name), kinds.Member(o, name)
		e, below := own.entry(p)
		_, belowOther := other.entry(p)
		switch {
		case e != nil:
			c.covered(other, side, e, mine, above)
		case below, belowOther && theirs != nil && !own.isRead(p):
			c.walk(own, other, side, p, mine, theirs, above)
			if kinds.ValuesOf(mine) != nil {
				c.keys(own, other, side, p, mine, theirs, above)
			}
		case own.isRead(p):
			c.exact = false
		case theirs == nil:
			c.missing(side, p, above)
		default:
			c.uncovered(other, side, p, mine, theirs, above)
		}
	}
}

// keys compares two maps of which rules name single keys. The other side may have a key by the new name already, so
// that is never exact.
func (c *comparison) keys(
	own, other *cover, side int, at fieldpath.Path, s, o *structuralschema.Structural, above fieldpath.Path,
) {
	c.exact = false
	for _, key := range slices.Sorted(maps.Keys(own.entries)) {
		if e := own.entries[key]; len(e.path) == len(at)+1 && e.path.HasPrefix(at) {
			c.covered(other, side, e, kinds.Field(own.schema, e.path), above)
		}
	}
	switch {
	case o == nil:
		c.missing(side, at, above)
	case side == 0:
		c.same(at, s, o, above)
	case kinds.ValuesOf(o) == nil:
		c.same(at, o, s, above)
	}
}

// uncovered compares a field that both sides have and that no rule of its own side names.
func (c *comparison) uncovered(
	other *cover, side int, p fieldpath.Path, mine, theirs *structuralschema.Structural, above fieldpath.Path,
) {
	switch taken, _ := other.entry(p); {
	case taken == nil:
		if side == 0 {
			c.same(p, mine, theirs, above)
		}
	case taken.by == coverComputed || taken.by == coverLost || taken.by == coverDefault:
		c.exact = false
	default:
		c.missing(side, p, above) // what a rule puts there is another field
	}
}

func (c *comparison) missing(side int, p, above fieldpath.Path) {
	c.exact = false
	if c.preserves && slices.Concat(above, p)[0].Field != "status" {
		return
	}
	c.problem(c.at, "%s has %s, for which no rule names a field of %s: add a rule, keep it by preserve, or acknowledge "+
		"it in lost",
		c.names[side], slices.Concat(above, p), c.names[1-side])
}

// covered compares what a rule has put together.
func (c *comparison) covered(
	other *cover, side int, e *covered, mine *structuralschema.Structural, above fieldpath.Path,
) {
	if e.other == nil {
		c.exact = false
		return
	}
	if side == 1 {
		return // the spoke's side has done it
	}
	c.exact = c.exact && !e.changed // another text may be the new name already
	theirs := kinds.Field(other.schema, e.other)
	where := slices.Concat(above, e.path)
	switch e.by {
	case "wrap":
		c.exact = false
		c.same(where, mine, theirs.Items, nil)
	case "unwrap":
		c.exact = false
		c.same(where, mine.Items, theirs, nil)
	case "forEach":
		if e.items != nil {
			if !kinds.IsSameType(mine, theirs) {
				c.differs(where, mine, theirs)
			}
			c.exact = c.exact && sameAlone(mine, theirs)
			c.sides(e.items[0], e.items[1], where)
		}
	default:
		if len(e.path) != len(e.other) || !e.path[:len(e.path)-1].Equal(e.other[:len(e.other)-1]) {
			c.exact = false // what a field was in may be empty without it, and gone in the other version
		}
		c.same(where, mine, theirs, nil)
	}
}

// same compares two schemas that say what one value may be.
func (c *comparison) same(p fieldpath.Path, s, h *structuralschema.Structural, above fieldpath.Path) {
	if s == nil || h == nil || !kinds.IsSameType(s, h) {
		c.differs(slices.Concat(above, p), s, h)
		return
	}
	c.exact = c.exact && sameAlone(s, h)
	for _, name := range kinds.FieldNames(s, h) {
		mine, theirs := kinds.Member(s, name), kinds.Member(h, name)
		switch at := p.Child(name); {
		case mine == nil:
			c.missing(1, at, above)
		case theirs == nil:
			c.missing(0, at, above)
		default:
			c.same(at, mine, theirs, above)
		}
	}
	if s.Items != nil && h.Items != nil {
		c.same(p, s.Items, h.Items, above)
	}
	if a, b := kinds.ValuesOf(s), kinds.ValuesOf(h); a != nil && b != nil {
		c.same(p, a, b, above)
	}
}

func (c *comparison) differs(p fieldpath.Path, s, h *structuralschema.Structural) {
	c.exact = false
	c.problem(c.at, "%s is %s in %s and %s in %s: set it by expressions in toHub and fromHub",
		p, describe(s), c.names[0], describe(h), c.names[1])
}

func describe(s *structuralschema.Structural) string {
	switch {
	case s == nil:
		return "missing"
	case s.XIntOrString:
		return "an integer or string"
	case s.Type == "":
		return "anything"
	case strings.ContainsRune("aeiou", rune(s.Type[0])):
		return "an " + s.Type
	}
	return "a " + s.Type
}

// sameAlone reports whether two schemas say the same, but for the fields and items in them.
func sameAlone(s, h *structuralschema.Structural) bool {
	a, b := *s, *h
	a.Description, b.Description, a.Title, b.Title = "", "", "", ""
	a.Properties, b.Properties, a.Items, b.Items, a.AdditionalProperties,
		b.AdditionalProperties = nil, nil, nil, nil, nil, nil
	return reflect.DeepEqual(a, b)
}

// keepsUnknown reports whether objects of a schema may have fields that it does not declare.
func keepsUnknown(s *structuralschema.Structural) bool {
	if s.XPreserveUnknownFields || s.Items != nil && keepsUnknown(s.Items) {
		return true
	}
	for _, property := range s.Properties {
		if keepsUnknown(&property) {
			return true
		}
	}
	a := kinds.ValuesOf(s)
	return a != nil && keepsUnknown(a)
}

// FloatUse is an expression that computes with floating-point numbers. Of two that are as close as can be, one may be
// lost and the other not, so only trying all values proves anything.
type FloatUse struct {
	Where   string
	Version *kinds.Version
	Schema  *structuralschema.Structural // of the object that it reads; nil for the item of a list
	Paths   []fieldpath.Path             // what it reads, from the root
	Whole   bool                         // it reads the whole object
}

func (c *cover) floats(where string, paths [][]string, whole bool) FloatUse {
	use := FloatUse{Where: where, Version: c.version, Schema: c.schema, Whole: whole}
	if c.item {
		use.Schema = nil
	}
	for _, path := range paths {
		use.Paths = append(use.Paths, slices.Concat(c.above, fieldpath.New(path...)))
	}
	return use
}
