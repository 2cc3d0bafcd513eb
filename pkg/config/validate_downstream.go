package config

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/corollary-dev/corollary/pkg/fieldpath"
)

func (v *validator) downstreams() {
	if len(v.Downstreams) == 0 {
		v.add("downstreams", "describe at least one downstream", "required value is missing")
	}
	first := map[string]int{}
	for i := range v.Downstreams {
		d, at := &v.Downstreams[i], fmt.Sprintf("downstreams[%d]", i)
		v.entryName("downstreams", i, d.Name, "name the downstream: its key in status, metrics and CEL", first)
		v.object(at, d.APIVersion, d.Kind)
		v.forEach(at+".forEach", d.ForEach)
		v.template(at, &d.Template, d.TemplateFile)
		v.ready(at, d)
		v.targets(at, d.TargetNamespaces)
		v.adopt(at, d)
		v.drift(at+".drift", d.Drift)
		v.ownership(at, d)
		v.generated(at, d)
	}
	v.order()
}

// maxForEach bounds forEach.maxItems: the status has an entry for each object, and an object of the API server 1.5 MiB.
const maxForEach = 1000

func (v *validator) forEach(at string, f *ForEach) {
	if f == nil {
		return
	}
	v.required(at+".items", f.Items, "write a CEL expression that gives a list or a map, such as self.spec.workers")
	if n := f.MaxItems; n != nil && (*n < 1 || *n > maxForEach) {
		v.add(at+".maxItems", fmt.Sprintf("write 1 to %d", maxForEach), "%d is out of range", *n)
	}
}

// template wants either text or a file, and reads the file into text.
func (v *validator) template(at string, text *string, name string) {
	if *text == "" && name == "" && !v.reported(at+".template") && !v.reported(at+".templateFile") {
		v.add(at+".template", "write template: | and the document below it, or name a templateFile", "there is no template")
		return
	}
	v.textOrFile(at+".template", "template", text, name)
}

func (v *validator) helpers() { v.textOrFile("helpers", "helpers", &v.Helpers, v.HelpersFile) }

// textOrFile reads the file, if one is named, into text. Both are too many.
func (v *validator) textOrFile(at, key string, text *string, name string) {
	switch {
	case name == "" || v.reported(at) || v.reported(at+"File"):
	case *text != "":
		v.add(at+"File", "keep one of the two", "both %s and %sFile are given", key, key)
	default:
		*text = v.readTemplate(at+"File", v.Place(name))
	}
}

func (v *validator) readTemplate(at, path string) string {
	text, err := readFile(path)
	switch {
	case err != nil:
		v.add(at, "name a file relative to the config file", "%s cannot be read: %s", path, reason(err))
	case strings.TrimSpace(string(text)) == "":
		v.add(at, "write the template into it", "%s is empty", path)
	case !utf8.Valid(text):
		v.add(at, "save it as UTF-8", "%s is not UTF-8", path)
	}
	return string(text)
}

func (v *validator) ready(at string, d *Downstream) {
	for i, r := range d.Ready.Rules {
		v.required(fmt.Sprintf("%s.ready.rules[%d].rule", at, i), r.Rule, "write a CEL expression over downstream")
	}
	for i, r := range d.Ready.Failed {
		v.required(fmt.Sprintf("%s.ready.failed[%d].rule", at, i), r.Rule, "write a CEL expression over downstream")
	}
}

func (v *validator) targets(at string, t TargetNamespaces) {
	path := at + ".targetNamespaces.names"
	switch {
	case t.From == NamespacesList && len(t.Names) == 0:
		v.add(path, "name the namespaces that the downstream may live in", "from is List, but no names are given")
	case t.From != NamespacesList && len(t.Names) > 0:
		v.add(path, "write from: List, or leave out the names", "names are given, but from is %s", t.From)
	}
	v.namespaces(path, t.Names)
}

// apartFields may not be left to others or taken from them: they say what an object is.
var apartFields = []string{"apiVersion", "kind", "metadata", "status"}

// drift checks initialFields and exclusiveFields: no field can be both left to others and ours alone, and a
// field inside another that is listed says nothing.
func (v *validator) drift(at string, d Drift) {
	type listed struct {
		at   string
		path fieldpath.Path
	}
	var all []listed
	check := func(at string, texts []string) {
		for i, text := range texts {
			here := fmt.Sprintf("%s[%d]", at, i)
			p, ok := v.fieldPath(here, text)
			if !ok {
				continue
			}
			if p[0].Kind != fieldpath.FieldStep || slices.Contains(apartFields, p[0].Field) {
				v.add(here, "name a field of the object's content, such as .spec.replicas or .data", "%s cannot be listed", p)
				continue
			}
			for _, other := range all {
				if p.Overlaps(other.path) {
					v.add(here, "keep one of the two", "%s overlaps %s in %s", p, other.path, other.at)
					break
				}
			}
			all = append(all, listed{here, p})
		}
	}
	check(at+".initialFields", d.InitialFields)
	check(at+".exclusiveFields", d.ExclusiveFields)
}
