package config

import (
	"fmt"
	"regexp"
	"slices"

	"github.com/corollary-dev/corollary/pkg/fieldpath"
)

// conditionType is the API server's pattern for metav1.Condition's type.
const conditionType = `^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$`

var conditionTypeRE = regexp.MustCompile(conditionType)

// maxConditionType is the API server's limit for metav1.Condition's type.
const maxConditionType = 316

// named is one of the conditions with the type that the config gives it.
type named struct{ key, conditionType string }

func (c Conditions) all() []named {
	return []named{{"ready", c.Ready}, {"valid", c.Valid}, {"reconciling", c.Reconciling}, {"stalled", c.Stalled}}
}

func (v *validator) status() {
	s := &v.Status
	if *s.Enabled {
		v.required("status.conditions.ready", s.Conditions.Ready,
			"name the condition type for readiness, or set status.enabled: false")
	}
	first := map[string]string{}
	for _, c := range s.Conditions.all() {
		at := "status.conditions." + c.key
		switch other, twice := first[c.conditionType]; {
		case c.conditionType == "":
		case len(c.conditionType) > maxConditionType || !conditionTypeRE.MatchString(c.conditionType):
			v.add(at, "write a word such as Ready, or DOMAIN/Ready", "%q is not a condition type", clip(c.conditionType))
		case twice:
			v.add(at, "choose another type", "%q is %s too", c.conditionType, other)
		default:
			first[c.conditionType] = at
		}
	}
	for i, f := range s.Fields {
		at := fmt.Sprintf("status.fields[%d]", i)
		v.required(at+".path", f.Path, "write where the value goes, such as .status.replicas")
		v.required(at+".value", f.Value, "write a CEL expression")
	}
	v.statusPaths()
}

// statusPath is a place in the upstream's status that the config has written.
type statusPath struct {
	at   string
	path fieldpath.Path
}

// by says who writes the path, for an error about another that overlaps it.
func (s statusPath) by() string {
	if s.at == "" {
		return ", which is written in any case"
	}
	return " of " + s.at
}

// ownStatus are the places that Corollary writes by itself.
var ownStatus = []statusPath{
	{"", fieldpath.New("status", "conditions")},
	{"", fieldpath.New("status", "observedGeneration")},
}

// paths returns the paths that parse, in the order of the config.
func (s *Status) paths() []statusPath {
	var out []statusPath
	take := func(at, text string) {
		if p, err := fieldpath.Parse(text); text != "" && err == nil {
			out = append(out, statusPath{at, p})
		}
	}
	take("status.downstreams", s.Downstreams)
	for i, f := range s.Fields {
		take(fmt.Sprintf("status.fields[%d].path", i), f.Path)
	}
	return out
}

func (v *validator) statusPaths() {
	texts := map[string]string{"status.downstreams": v.Status.Downstreams}
	for i, f := range v.Status.Fields {
		texts[fmt.Sprintf("status.fields[%d].path", i)] = f.Path
	}
	for _, at := range sortedKeys(texts) {
		if texts[at] != "" {
			v.fieldPath(at, texts[at])
		}
	}
	taken := slices.Clone(ownStatus)
	for _, sp := range v.Status.paths() {
		if v.statusPath(sp) {
			for _, other := range taken {
				if sp.path.Overlaps(other.path) {
					v.add(sp.at, "choose another path", "%s overlaps %s%s", sp.path, other.path, other.by())
					break
				}
			}
			taken = append(taken, sp)
		}
	}
}

// statusPath checks that a path names a key below .status; a list's items cannot be written one by one.
func (v *validator) statusPath(sp statusPath) bool {
	const fix = "write keys below .status, such as .status.replicas"
	switch {
	case !sp.path.HasPrefix(fieldpath.New("status")) || len(sp.path) < 2:
		v.add(sp.at, fix, "%s is not below .status", sp.path)
	case slices.ContainsFunc(sp.path, func(s fieldpath.Step) bool { return s.Kind != fieldpath.FieldStep }):
		v.add(sp.at, fix, "%s names an item of a list", sp.path)
	default:
		return true
	}
	return false
}
