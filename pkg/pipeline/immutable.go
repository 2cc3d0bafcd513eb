package pipeline

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/corollary-dev/corollary/pkg/builtin"
	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/render"
)

// changeable are the fields of the upstream that may change and that the holes of a template print, by line and column. It is nil if
// the downstream is not updated in place, or of an upstream whose schema is not known.
func (c *compiler) changeable(d *Downstream, walk *shapeWalk) map[[2]int][]string {
	if d.Config.UpdatePolicy == config.UpdateRecreate || d.Config.UpdatePolicy == config.UpdateCreateOnly || c.p.Upstream.Schema == nil {
		return nil
	}
	found := map[[2]int][]string{}
	for pos := range walk.printed {
		line, column := d.source.place(int(pos))
		at := [2]int{line, column}
		reads := walk.printedReads[pos]
		for _, name := range walk.printedVariables[pos] {
			if program := c.p.variable(name); program != nil {
				paths, _ := program.Reads("self")
				for _, path := range paths {
					reads = append(slices.Clip(reads), fieldRead{path, true})
				}
			}
		}
		for _, r := range reads {
			if field := dotted(r.path); r.whole && mayChange(r.path, c.p.Upstream.Schema) && !slices.Contains(found[at], field) {
				found[at] = append(found[at], field)
			}
		}
		slices.Sort(found[at])
	}
	return found
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
			s = plainSchema(s.Items.Schema)
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
		s = plainSchema(&property)
	}
	return true
}

var unessential = regexp.MustCompile(`[\s?()]`)

// forbidsChange reports whether a rule of a schema compares itself, or what leads to a field below it, with the old value.
func forbidsChange(s *spec.Schema, below []string) bool {
	var rules []struct{ Rule string }
	if text, err := json.Marshal(s.Extensions["x-kubernetes-validations"]); err != nil || json.Unmarshal(text, &rules) != nil {
		return false // its type depends on where the schema comes from
	}
	for _, r := range rules {
		rule := unessential.ReplaceAllString(r.Rule, "") + ";"
		path := ""
		for i := 0; ; i++ {
			for _, same := range []string{"self" + path + "==oldSelf" + path, "oldSelf" + path + "==self" + path} {
				if at := strings.Index(rule, same); at >= 0 && !strings.ContainsRune(".[_", rune(rule[at+len(same)])) && !isWordByte(rule[at+len(same)]) {
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

// entriesOf visits all entries of a document for what is wrong whatever the schema says. What an alias stands for is visited once.
func (t *typeCheck) entriesOf(root *render.Sketch) {
	seen, named := map[*render.Sketch]bool{}, t.inName(root)
	t.isFrozen = t.kind.GVK.Group == "" && slices.ContainsFunc(root.Entries, func(e render.SketchEntry) bool {
		return e.Key == "immutable" && e.Value != nil && e.Value.Value == true
	})
	var visit func(s *render.Sketch, at []string)
	visit = func(s *render.Sketch, at []string) {
		if s == nil || seen[s] {
			return
		}
		seen[s] = true
		t.immutable(s.Holes, at, named)
		for _, e := range s.Entries {
			if e.Written != "" {
				t.count(e.Line, "misread "+e.Written, &finding{problem: fmt.Sprintf("YAML 1.1 reads the key %s as %q", e.Written, e.Key),
					fix: fmt.Sprintf("quote it: %q", e.Written), unsure: true})
			}
			below := append(slices.Clip(at), e.Key)
			t.immutable(e.Holes, at, named)
			visit(e.Value, below)
		}
		for _, item := range s.Items {
			visit(item, at)
		}
	}
	visit(root, nil)
	t.aggregated(root)
}

// inName are the fields of the upstream in the name of the object: if one of them changes, there is another object.
func (t *typeCheck) inName(root *render.Sketch) (fields []string) {
	for _, metadata := range root.Entries {
		if metadata.Key != "metadata" || metadata.Value == nil {
			continue
		}
		for _, e := range metadata.Value.Entries {
			if e.Key != "name" && e.Key != "namespace" || e.Value == nil {
				continue
			}
			for _, h := range e.Value.Holes {
				fields = append(fields, t.changeable[[2]int{h.Line, h.Column}]...)
			}
		}
	}
	return fields
}

// immutable finds holes that print fields of the upstream which may change into a field which cannot. named are those in the
// name of the object.
func (t *typeCheck) immutable(holes []render.Hole, at, named []string) {
	field, kind := builtin.Immutable(t.kind.GVK.GroupKind(), at), t.kind.GVK.Kind
	fix := "add the rule self == oldSelf to it in the CustomResourceDefinition (x-kubernetes-validations), " +
		"or set updatePolicy: Recreate, which deletes the object and creates it again"
	switch {
	case field == "" && t.isFrozen && len(at) > 0 && slices.Contains([]string{"data", "binaryData", "stringData"}, at[0]):
		field, fix = at[0]+" with immutable: true", "leave out immutable, or put "+
			"what may change into the name of the object: there is a new one then, and the old one is deleted"
	case field == "":
		return
	case kind == "PersistentVolumeClaim":
		fix += ": with the data of its volume, unless the volume is retained"
	}
	for _, h := range holes {
		from := slices.DeleteFunc(slices.Clone(t.changeable[[2]int{h.Line, h.Column}]), func(field string) bool { return slices.Contains(named, field) })
		if len(from) == 0 {
			continue
		}
		t.count(h.Line, "immutable "+h.Text, &finding{unsure: true,
			problem: fmt.Sprintf("%s may change, and .%s of a %s cannot: the API server would refuse the update", strings.Join(from, " or "), field, kind),
			fix:     fix})
	}
}

// aggregated finds rules of a ClusterRole that has others aggregated: its controller writes them.
func (t *typeCheck) aggregated(root *render.Sketch) {
	entry := func(key string) int {
		return slices.IndexFunc(root.Entries, func(e render.SketchEntry) bool { return e.Key == key })
	}
	if i := entry("rules"); i >= 0 && t.kind.GVK.Kind == "ClusterRole" && entry("aggregationRule") >= 0 {
		t.count(root.Entries[i].Line, "aggregated", &finding{unsure: true,
			problem: "a controller of Kubernetes writes the rules of a ClusterRole with an aggregationRule: both would write them in turn", fix: "leave rules out"})
	}
}
