package check

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/corollary-dev/corollary/pkg/builtin"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/render/holes"
	"github.com/corollary-dev/corollary/pkg/render/skeleton"
)

// UpdatedInPlace says that the objects are updated when the upstream changes, whose schema is given. readsOf returns
// what one of the config's variables reads of it.
func (d *Documents) UpdatedInPlace(upstream *spec.Schema, readsOf func(variable string) [][]string) {
	d.changeable = map[place][]string{}
	for at, p := range d.walked.printed {
		reads := p.reads
		for _, name := range p.variables {
			for _, path := range readsOf(name) {
				reads = append(slices.Clip(reads), Read{path, true})
			}
		}
		for _, r := range reads {
			field := fieldpath.New(r.Path...).String()
			if r.Whole && mayChange(r.Path, upstream) && !slices.Contains(d.changeable[at], field) {
				d.changeable[at] = append(d.changeable[at], field)
			}
		}
		slices.Sort(d.changeable[at])
	}
}

// mayChange reports whether an author of the upstream may change a field: no rule of its schema forbids it.
func mayChange(field []string, s *spec.Schema) bool {
	if len(field) == 0 || slices.Contains([]string{"apiVersion", "kind"}, field[0]) ||
		field[0] == "metadata" && (len(field) == 1 || field[1] != "labels" && field[1] != "annotations") {
		return false
	}
	for i := 0; s != nil; i++ {
		for s.Items != nil && s.Items.Schema != nil {
			if forbidsChange(s, nil) {
				return false
			}
			s = kinds.PlainSchema(s.Items.Schema)
		}
		if forbidsChange(s, field[i:]) {
			return false
		}
		if i == len(field) {
			break
		}
		property, declared := s.Properties[field[i]]
		if !declared {
			break
		}
		s = kinds.PlainSchema(&property)
	}
	return true
}

var unessential = regexp.MustCompile(`[\s?()]`)

// forbidsChange reports whether a rule of a schema compares itself, or what leads to a field below it, with the old
// value.
func forbidsChange(s *spec.Schema, below []string) bool {
	var rules []struct{ Rule string }
	if text, err := json.Marshal(s.Extensions["x-kubernetes-validations"]); err != nil ||
		json.Unmarshal(text, &rules) != nil {
		return false // its type depends on where the schema comes from
	}
	for _, r := range rules {
		rule := unessential.ReplaceAllString(r.Rule, "") + ";"
		path := ""
		for i := 0; ; i++ {
			for _, same := range []string{"self" + path + "==oldSelf" + path, "oldSelf" + path + "==self" + path} {
				if at := strings.Index(rule, same); at >= 0 && !strings.ContainsRune(".[_", rune(rule[at+len(same)])) &&
					!isWordByte(rule[at+len(same)]) {
					return true
				}
			}
			if i == len(below) {
				break
			}
			path += "." + below[i]
		}
	}
	return false
}

func isWordByte(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9'
}

// hasImmutable reports whether a document freezes its data.
func (d *Documents) hasImmutable(root *skeleton.Node) bool {
	e := entry(root, "immutable")
	return d.kind.GVK.Group == "" && e != nil && e.Value.Value == true
}

// inName are the fields of the upstream in the name of the object: if one of them changes, there is another object.
func (d *Documents) inName(root *skeleton.Node) (fields []string) {
	metadata := entry(root, "metadata")
	if metadata == nil {
		return nil
	}
	for _, key := range []string{"name", "namespace"} {
		if e := entry(metadata.Value, key); e != nil {
			for _, h := range d.holes(e.Value) {
				fields = append(fields, d.changeable[place{h.Line, h.Column}]...)
			}
		}
	}
	return fields
}

// immutable finds holes that print fields of the upstream which may change into a field which cannot.
func (d *Documents) immutable(printing []holes.Hole, at []string) {
	field, kind := builtin.Immutable(d.kind.GVK.GroupKind(), at), d.kind.GVK.Kind
	fix := "add the rule self == oldSelf to it in the CustomResourceDefinition (x-kubernetes-validations), " +
		"or set updatePolicy: Recreate, which deletes the object and creates it again"
	switch {
	case field == "" && d.isFrozen && len(at) > 0 && slices.Contains([]string{"data", "binaryData", "stringData"}, at[0]):
		field, fix = at[0]+" with immutable: true", "leave out immutable, or put "+
			"what may change into the name of the object: there is a new one then, and the old one is deleted"
	case field == "":
		return
	case kind == "PersistentVolumeClaim":
		fix += ": with the data of its volume, unless the volume is retained"
	}
	for _, h := range printing {
		from := slices.DeleteFunc(slices.Clone(d.changeable[place{h.Line, h.Column}]),
			func(field string) bool { return slices.Contains(d.named, field) })
		if len(from) == 0 {
			continue
		}
		d.count(h.Line, "immutable "+h.Text, &Finding{Unsure: true,
			Problem: fmt.Sprintf("%s may change, and .%s of a %s cannot: the API server would refuse the update",
				strings.Join(from, " or "), field, kind),
			Fix: fix})
	}
}

// aggregated finds rules of a ClusterRole that has others aggregated: its controller writes them.
func (d *Documents) aggregated(root *skeleton.Node) {
	if rules := entry(root, "rules"); rules != nil && d.kind.GVK.Kind == "ClusterRole" &&
		entry(root, "aggregationRule") != nil {
		d.count(d.Line(rules.Line), "aggregated", &Finding{Unsure: true,
			Problem: "a controller of Kubernetes writes the rules of a ClusterRole with an aggregationRule: both would write " +
				"them in turn",
			Fix: "leave rules out"})
	}
}
