package check

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/render/holes"
	"github.com/corollary-dev/corollary/pkg/render/skeleton"
)

// Documents holds what the author of a template has written, and what is known of the holes in it, to the schema of the
// downstream's kind. It looks at the document of each path through the template's conditions: something is wrong only
// if it is wrong on every path that prints it.
type Documents struct {
	kind       kinds.Kind
	ownsFields bool // others made the object
	walked     *Walked
	// changeable are the fields of the upstream that may change and that holes print.
	changeable map[place][]string

	sites     map[site]*sighting
	maps      map[site]*writtenMap
	documents int
	// Of the current document:
	*holes.Document
	visits   int
	isFrozen bool     // it has immutable: true
	named    []string // the fields of the upstream in its name
}

// maxVisits bounds the work for a document whose aliases refer to each other.
const maxVisits = 100_000

// site is something that the author has written: a scalar, a key, an item.
type site struct {
	line int
	what string
}

// sighting counts the paths that print a site, and those on which it is wrong.
type sighting struct {
	times, wrong int
	finding      Finding
}

// path is where something is in a document.
type path struct {
	text   string
	fields []string // lists taking no step
}

func (p path) field(name string) path {
	return path{p.text + step(name), append(slices.Clip(p.fields), name)}
}

// Documents prepares to hold the documents of a template to their kind. ownsFields: the objects are those of others.
func (w *Walked) Documents(kind kinds.Kind, ownsFields bool) *Documents {
	return &Documents{kind: kind, ownsFields: ownsFields, walked: w,
		sites: map[site]*sighting{}, maps: map[site]*writtenMap{}}
}

// count counts a site; found is nil where nothing is wrong with it.
func (d *Documents) count(line int, what string, found *Finding) {
	at := d.sites[site{line, what}]
	if at == nil {
		at = &sighting{}
		d.sites[site{line, what}] = at
	}
	at.times++
	if found != nil {
		at.wrong++
		at.finding = *found
		at.finding.Line = line
	}
}

// Add takes in the document of one path.
func (d *Documents) Add(p *holes.Document) {
	s := p.Root
	d.Document, d.visits = p, 0
	d.documents++
	if s.Kind != skeleton.MapNode || isSplice(s) {
		return
	}
	root := d.kind.Schema
	if root == nil {
		root = &spec.Schema{}
	}
	d.named, d.isFrozen = d.inName(s), d.hasImmutable(s)
	d.aggregated(s)
	for _, e := range s.Entries {
		switch {
		case e.Key == "metadata" && e.Splice < 0 && len(e.Holes) == 0:
			d.entry(metadataOnly, e, path{})
		case e.Splice >= 0 || len(e.Holes) > 0 || slices.Contains(OfEveryKind, e.Key):
			d.entry(nil, e, path{})
		default:
			d.entry(root, e, path{})
		}
	}
	d.written(s, root, "")
}

// metadataOnly is the schema of what a template may set of the metadata; what else it sets is found elsewhere.
var metadataOnly = func() *spec.Schema {
	metadata := spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"object"}, Properties: map[string]spec.Schema{
		"name": *spec.StringProperty(), "namespace": *spec.StringProperty(),
		"labels": *spec.MapProperty(spec.StringProperty()), "annotations": *spec.MapProperty(spec.StringProperty()),
	}}}
	metadata.AddExtension(preservesUnknown, true)
	return &spec.Schema{SchemaProps: spec.SchemaProps{Properties: map[string]spec.Schema{"metadata": metadata}}}
}()

// checkNode checks what is at a path, and everything below; a nil schema takes anything.
func (d *Documents) checkNode(s *skeleton.Node, schema *spec.Schema, at path) {
	if d.visits++; d.visits > maxVisits {
		return
	}
	d.immutable(d.holes(s), at.fields)
	schema = kinds.PlainSchema(schema)
	found := d.checkValue(s, schema, at.text)
	line := d.Line(s.Line)
	d.count(line, d.literal(s), found)
	if d.ownsFields && isAtomicList(schema) {
		d.count(line, "list "+at.text, &Finding{Problem: at.text +
			" is a list that the API server does not merge: it has one manager, and with " +
			"ownership: Fields the items of others are a Conflict, or lost with force: true",
			Fix: "leave it out if others write it", Unsure: true})
		d.ownsFields = false // lists in its items go with it
		defer func() { d.ownsFields = true }()
	}
	if found != nil {
		schema = nil
	}
	switch {
	case isSplice(s):
	case s.Kind == skeleton.MapNode:
		for _, e := range s.Entries {
			d.entry(schema, e, at)
		}
		d.written(s, schema, at.text)
	case s.Kind == skeleton.ListNode:
		d.list(s, schema, at)
	}
}

// list checks the items of a list.
func (d *Documents) list(s *skeleton.Node, schema *spec.Schema, at path) {
	item := kinds.ItemSchema(schema)
	if d.ownsFields {
		item = requiring(item, mapKeys(schema))
	}
	for _, i := range s.Items {
		if isSplice(i) {
			d.immutable(d.holes(i), at.fields)
		} else {
			d.checkNode(i, item, path{at.text + "[]", at.fields})
		}
	}
	d.items(s, schema, at.text)
}

// entry checks one entry of a map.
func (d *Documents) entry(schema *spec.Schema, e skeleton.Entry, at path) {
	printing, line := d.entryHoles(e), d.Line(e.Line)
	if e.Written != "" {
		d.count(line, "misread "+e.Written,
			&Finding{Problem: fmt.Sprintf("YAML 1.1 reads the key %s as %q", e.Written, e.Key),
				Fix: fmt.Sprintf("quote it: %q", e.Written), Unsure: true})
	}
	d.immutable(printing, at.fields)
	switch {
	case e.Splice >= 0:
		for _, h := range printing {
			d.count(h.Line, h.Text+at.text, d.hole(h, schema, at.text))
		}
	case len(e.Holes) > 0:
		d.checkNode(e.Value, kinds.ValueSchema(schema), path{at.text + "[*]", append(slices.Clip(at.fields), e.Key)})
	default:
		owner := at.text
		if owner == "" {
			owner = d.kind.GVK.Kind
		}
		d.count(line, "key "+e.Key, unknownField(schema, e.Key, owner))
		d.checkNode(e.Value, property(schema, e.Key), at.field(e.Key))
	}
}

// literal distinguishes the values of one line.
func (d *Documents) literal(s *skeleton.Node) string {
	var parts []string
	for _, h := range d.holes(s) {
		parts = append(parts, fmt.Sprintf("%d:%d", h.Line, h.Column))
	}
	for _, e := range s.Entries {
		parts = append(parts, fmt.Sprintf("%d %s", d.Line(e.Line), e.Key))
	}
	for _, i := range s.Items {
		parts = append(parts, fmt.Sprintf("%d %d %v", d.Line(i.Line), i.Kind, i.Value))
	}
	return fmt.Sprintf("%d %#v %q", s.Kind, s.Value, parts)
}

// Findings are what is wrong, by line. Unsure ones are what the API server may refuse for some upstreams.
func (d *Documents) Findings() []Finding {
	all := d.missing()
	for _, s := range d.sites {
		if s.wrong == s.times && (s.finding.Other == 0 || d.documents <= mostBranches) {
			all = append(all, s.finding)
		}
	}
	slices.SortFunc(all, func(a, b Finding) int {
		return cmp.Or(a.Line-b.Line, strings.Compare(a.Problem, b.Problem))
	})
	return slices.Compact(all) // a map is known by each of its entries
}
