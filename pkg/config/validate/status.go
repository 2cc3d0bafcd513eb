package validate

import (
	"fmt"
	"regexp"
	"slices"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/config/document"
	"github.com/corollary-dev/corollary/pkg/config/forms"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
)

var conditionTypeRE = regexp.MustCompile(forms.ConditionType)

// maxConditionType is the API server's limit for metav1.Condition's type.
const maxConditionType = 316

func checkStatus(v *validator) {
	s := &v.Status
	if *s.Enabled {
		v.required("status.conditions.ready", s.Conditions.Ready,
			"name the condition type for readiness, or set status.enabled: false")
	}
	first := map[string]string{}
	for _, c := range s.Conditions.All() {
		at := "status.conditions." + c.Key
		switch other, twice := first[c.ConditionType]; {
		case c.ConditionType == "":
		case len(c.ConditionType) > maxConditionType || !conditionTypeRE.MatchString(c.ConditionType):
			v.Add(at, "write a word such as Ready, or DOMAIN/Ready", "%q is not a condition type",
				document.Clip(c.ConditionType))
		case twice:
			v.Add(at, "choose another type", "%q is %s too", c.ConditionType, other)
		default:
			first[c.ConditionType] = at
		}
	}
	for i, f := range s.Fields {
		at := fmt.Sprintf("status.fields[%d]", i)
		v.required(at+".path", f.Path, "write where the value goes, such as .status.replicas")
		v.required(at+".value", f.Value, "write a CEL expression")
	}
	checkStatusPaths(v)
}

// ownStatus are the places that Corollary writes by itself.
var ownStatus = []config.StatusPath{
	{Path: fieldpath.New("status", "conditions")},
	{Path: fieldpath.New("status", "observedGeneration")},
}

func checkStatusPaths(v *validator) {
	texts := map[string]string{"status.downstreams": v.Status.Downstreams}
	for i, f := range v.Status.Fields {
		texts[fmt.Sprintf("status.fields[%d].path", i)] = f.Path
	}
	for _, at := range document.SortedKeys(texts) {
		if texts[at] != "" {
			checkFieldPath(v, at, texts[at])
		}
	}
	taken := slices.Clone(ownStatus)
	for _, sp := range v.Status.Paths() {
		if checkStatusPath(v, sp) {
			for _, other := range taken {
				if sp.Path.Overlaps(other.Path) {
					v.Add(sp.At, "choose another path", "%s overlaps %s%s", sp.Path, other.Path, other.By())
					break
				}
			}
			taken = append(taken, sp)
		}
	}
}

// checkStatusPath checks that a path names a key below .status; a list's items cannot be written one by one.
func checkStatusPath(v *validator, sp config.StatusPath) bool {
	const fix = "write keys below .status, such as .status.replicas"
	switch {
	case !sp.Path.HasPrefix(fieldpath.New("status")) || len(sp.Path) < 2:
		v.Add(sp.At, fix, "%s is not below .status", sp.Path)
	case slices.ContainsFunc(sp.Path, func(s fieldpath.Step) bool { return s.Kind != fieldpath.FieldStep }):
		v.Add(sp.At, fix, "%s names an item of a list", sp.Path)
	default:
		return true
	}
	return false
}
