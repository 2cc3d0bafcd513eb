package pipeline

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/render"
)

// typeCheck holds what the author of a template has written, and what is known of the holes in it, to the schema of the
// downstream's kind. It looks at the document of each path through the template's conditions: something is wrong only if it
// is wrong on every path that prints it.
type typeCheck struct {
	kind       kinds.Kind
	ownsFields bool             // the object is somebody else's
	shapes     map[[2]int]shape // of the holes, by line and column
	// changeable are the fields of the upstream that may change and that holes print, by line and column.
	changeable map[[2]int][]string

	sites     map[site]*sighting
	maps      map[site]*writtenMap
	pairs     map[[2]site]*sighting
	documents int
	visits    int  // of the document at hand
	isFrozen  bool // the document at hand has immutable: true
}

// maxVisits bounds the work for a document whose aliases stand for each other.
const maxVisits = 100_000

// site is something that the author has written: a scalar, a key, an item.
type site struct {
	line int
	what string
}

// sighting counts the paths that print a site, and those on which it is wrong.
type sighting struct {
	times, wrong int
	finding      finding
}

// count counts a site; found is nil where nothing is wrong with it.
func (t *typeCheck) count(line int, what string, found *finding) {
	at := t.sites[site{line, what}]
	if at == nil {
		at = &sighting{}
		t.sites[site{line, what}] = at
	}
	at.times++
	if found != nil {
		at.wrong++
		at.finding = *found
	}
}

// types prepares to check a template against the schema of a downstream; its sketches are what is checked.
func (c *compiler) types(d *Downstream) *typeCheck {
	walk := walkShapes(d.Config.Template, c.p.renderOptions(), c.p.rootsOf(d))
	t := &typeCheck{changeable: c.changeable(d, walk), kind: d.Kind, ownsFields: d.OwnsFields(), shapes: map[[2]int]shape{}, sites: map[site]*sighting{}, maps: map[site]*writtenMap{}, pairs: map[[2]site]*sighting{}}
	for pos, s := range walk.printed {
		line, column := d.source.place(int(pos))
		t.shapes[[2]int{line, column}] = s
	}
	return t
}

// document takes one document in.
func (t *typeCheck) document(s *render.Sketch) {
	t.visits = 0
	t.documents++
	if s.Kind != render.SketchMap {
		return
	}
	root := t.kind.Schema
	if root == nil {
		root = &spec.Schema{}
	}
	t.entriesOf(s)
	for _, e := range s.Entries {
		switch {
		case e.Value == nil || len(e.Holes) > 0:
		case e.Key == "metadata":
			t.value(e.Value, templateMetadata, ".metadata")
		case !slices.Contains(ofEveryKind, e.Key):
			t.entry(root, e, "")
		}
	}
	t.written(s, root, "")
}

// ofEveryKind are the fields at the root that have rules of their own.
var ofEveryKind = []string{"apiVersion", "kind", "metadata", "status"}

// templateMetadata is the schema of what a template may set of the metadata; what else it sets is found elsewhere.
var templateMetadata = func() *spec.Schema {
	s := &spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"object"}, Properties: map[string]spec.Schema{
		"name": *spec.StringProperty(), "namespace": *spec.StringProperty(),
		"labels": *spec.MapProperty(spec.StringProperty()), "annotations": *spec.MapProperty(spec.StringProperty()),
	}}}
	s.AddExtension(preservesUnknown, true)
	return s
}()

// value checks what stands at a path, and everything below; a nil schema takes anything.
func (t *typeCheck) value(s *render.Sketch, schema *spec.Schema, at string) {
	if t.visits++; t.visits > maxVisits {
		return
	}
	schema = plainSchema(schema)
	found := t.checkValue(s, schema, at)
	t.count(s.Line, literal(s), found)
	if t.ownsFields && isAtomicList(schema) {
		t.count(s.Line, "list "+at, &finding{problem: at + " is a list that the API server does not merge: it has one manager, and with " +
			"ownership: Fields the items of others are a Conflict, or lost with force: true", fix: "leave it out if others write it", unsure: true})
		t.ownsFields = false // lists in its items go with it
		defer func() { t.ownsFields = true }()
	}
	if found != nil {
		schema = nil
	}
	switch s.Kind {
	case render.SketchMap:
		for _, e := range s.Entries {
			t.entry(schema, e, at)
		}
		t.written(s, schema, at)
	case render.SketchList:
		item := itemSchema(schema)
		if t.ownsFields {
			item = requiring(item, mapKeys(schema))
		}
		for _, i := range s.Items {
			if i.Kind != render.SketchSplice {
				t.value(i, item, at+"[]")
			}
		}
		t.items(s, schema, at)
	}
}

// entry checks one entry of a map.
func (t *typeCheck) entry(schema *spec.Schema, e render.SketchEntry, at string) {
	if e.Value == nil {
		for _, h := range e.Holes {
			t.count(h.Line, h.Text+at, t.hole(h, schema, at))
		}
		return
	}
	if len(e.Holes) > 0 {
		t.value(e.Value, anyValue(schema), at+"[*]")
		return
	}
	below := at + pathStep(e.Key)
	property, found := t.property(schema, e.Key, at)
	t.count(e.Line, "key "+e.Key, found)
	t.value(e.Value, property, below)
}

func pathStep(key string) string {
	if strings.ContainsAny(key, "./[]'\" ") {
		return "['" + strings.ReplaceAll(key, "'", "''") + "']"
	}
	return "." + key
}

// literal tells the values of one line apart.
func literal(s *render.Sketch) string {
	var parts []string
	for _, h := range s.Holes {
		parts = append(parts, fmt.Sprintf("%d:%d", h.Line, h.Column))
	}
	for _, e := range s.Entries {
		parts = append(parts, fmt.Sprintf("%d %s", e.Line, e.Key))
	}
	for _, i := range s.Items {
		parts = append(parts, fmt.Sprintf("%d %d %v", i.Line, i.Kind, i.Value))
	}
	return fmt.Sprintf("%d %#v %q", s.Kind, s.Value, parts)
}

// report files what is wrong. What the API server refuses whatever the upstream holds is told apart from what it may refuse.
func (t *typeCheck) report(c *compiler, in *source) {
	type placed struct {
		line int
		finding
	}
	var all []placed
	for at, s := range t.sites {
		if s.wrong == s.times {
			all = append(all, placed{at.line, s.finding})
		}
	}
	for line, found := range t.missing() {
		all = append(all, placed{line.line, found})
	}
	for line, found := range t.duplicates() {
		all = append(all, placed{line.line, found})
	}
	slices.SortFunc(all, func(a, b placed) int {
		if a.line != b.line {
			return a.line - b.line
		}
		return strings.Compare(a.problem, b.problem)
	})
	for _, f := range all {
		e := in.problem(f.line, f.problem, f.fix)
		if f.other > 0 {
			_, other := in.at(f.other)
			e.Problem += fmt.Sprintf(", the other in line %d", other)
		}
		switch {
		case c.reported(e):
		case f.unsure:
			c.warn(e)
		default:
			c.p.Refusals = append(c.p.Refusals, e)
		}
	}
}

// reported reports whether something was said already of the field that is named in a problem.
func (c *compiler) reported(e config.Error) bool {
	same := func(have config.Error) bool {
		return have.File == e.File && have.Line == e.Line && have.Path == e.Path && (have.Problem == e.Problem || strings.HasPrefix(have.Problem, "metadata"))
	}
	return slices.ContainsFunc(c.p.Warnings, same) || slices.ContainsFunc(c.p.Refusals, same) ||
		slices.ContainsFunc(c.errs, func(have *config.Error) bool { return same(*have) })
}

func (c *compiler) warn(e config.Error) {
	if !slices.Contains(c.p.Warnings, e) {
		c.p.Warnings = append(c.p.Warnings, e)
	}
}
