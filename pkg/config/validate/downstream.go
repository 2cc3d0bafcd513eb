package validate

import (
	"fmt"
	"slices"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
)

func checkDownstreams(v *validator) {
	if len(v.Downstreams) == 0 {
		v.Add("downstreams", "describe at least one downstream", "required value is missing")
	}
	first := map[string]int{}
	for i := range v.Downstreams {
		d, at := &v.Downstreams[i], fmt.Sprintf("downstreams[%d]", i)
		checkEntryName(v, "downstreams", i, d.Name, "name the downstream: its key in status, metrics and CEL", first)
		checkObject(v, at, d.APIVersion, d.Kind)
		checkForEach(v, at+".forEach", d.ForEach)
		checkReady(v, at, d)
		checkTargets(v, at, d.TargetNamespaces)
		checkAdopt(v, at, d)
		checkDrift(v, at+".drift", d.Drift)
		checkOwnership(v, at, d)
		checkGenerated(v, at, d)
	}
	checkOrder(v)
}

// maxForEach bounds forEach.maxItems: the status has an entry for each object, and an object of the API server 1.5 MiB.
const maxForEach = 1000

func checkForEach(v *validator, at string, f *config.ForEach) {
	if f == nil {
		return
	}
	v.required(at+".items", f.Items, "write a CEL expression that gives a list or a map, such as self.spec.workers")
	if n := f.MaxItems; n != nil && (*n < 1 || *n > maxForEach) {
		v.Add(at+".maxItems", fmt.Sprintf("write 1 to %d", maxForEach), "%d is out of range", *n)
	}
}

func checkReady(v *validator, at string, d *config.Downstream) {
	for i, r := range d.Ready.Rules {
		v.required(fmt.Sprintf("%s.ready.rules[%d].rule", at, i), r.Rule, "write a CEL expression over downstream")
	}
	for i, r := range d.Ready.Failed {
		v.required(fmt.Sprintf("%s.ready.failed[%d].rule", at, i), r.Rule, "write a CEL expression over downstream")
	}
}

func checkTargets(v *validator, at string, t config.TargetNamespaces) {
	path := at + ".targetNamespaces.names"
	switch {
	case t.From == config.NamespacesList && len(t.Names) == 0:
		v.Add(path, "name the namespaces that the downstream may live in", "from is List, but no names are given")
	case t.From != config.NamespacesList && len(t.Names) > 0:
		v.Add(path, "write from: List, or leave out the names", "names are given, but from is %s", t.From)
	}
	checkNamespaces(v, path, t.Names)
}

// apartFields may not be left to others or taken from them: they say what an object is.
var apartFields = []string{"apiVersion", "kind", "metadata", "status"}

// checkDrift checks initialFields and exclusiveFields: no field can be both left to others and ours alone, and a
// field inside another that is listed says nothing.
func checkDrift(v *validator, at string, d config.Drift) {
	type listed struct {
		at   string
		path fieldpath.Path
	}
	var all []listed
	check := func(at string, texts []string) {
		for i, text := range texts {
			here := fmt.Sprintf("%s[%d]", at, i)
			p, ok := checkFieldPath(v, here, text)
			if !ok {
				continue
			}
			if p[0].Kind != fieldpath.FieldStep || slices.Contains(apartFields, p[0].Field) {
				v.Add(here, "name a field of the object's content, such as .spec.replicas or .data", "%s cannot be listed", p)
				continue
			}
			for _, other := range all {
				if p.Overlaps(other.path) {
					v.Add(here, "keep one of the two", "%s overlaps %s in %s", p, other.path, other.at)
					break
				}
			}
			all = append(all, listed{here, p})
		}
	}
	check(at+".initialFields", d.InitialFields)
	check(at+".exclusiveFields", d.ExclusiveFields)
}
