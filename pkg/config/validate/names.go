package validate

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/corollary-dev/corollary/pkg/config/document"
	"github.com/corollary-dev/corollary/pkg/config/forms"
)

var memberNameRE = regexp.MustCompile(forms.MemberName)

// celWords cannot be selected from a map. The words that CEL only reserves, such as namespace, can:
// downstreams.namespace.
var celWords = []string{"false", "in", "null", "true"}

// checkMember checks a name by which expressions select from the map of that name in CEL.
func checkMember(v *validator, at, list, name string) bool {
	misread := v.MisreadKey(at)
	switch {
	case misread != nil:
		v.Errs = append(v.Errs, misread)
	case strings.Contains(name, "-") && memberNameRE.MatchString(camel(name)):
		v.Add(at, "write "+camel(name), "%q has a hyphen, and CEL would read %s.%s as a subtraction",
			document.Clip(name), list, document.Clip(name))
	case !memberNameRE.MatchString(name):
		v.Add(at, "write letters, digits and _, beginning with a small letter: CEL reads "+list+".NAME",
			"%q cannot be used in CEL", document.Clip(name))
	case slices.Contains(celWords, name):
		v.Add(at, "choose another", "%q is a word of CEL's own", name)
	default:
		return true
	}
	return false
}

// checkEntryName checks the name of entry i of downstreams or inputs: it is there, CEL can select by it, and no entry
// before has it. first has the entries so far by their names; fix says what the name is for.
func checkEntryName(v *validator, list string, i int, name, fix string, first map[string]int) {
	at := fmt.Sprintf("%s[%d].name", list, i)
	if !v.required(at, name, fix) || !checkMember(v, at, list, name) {
		return
	}
	if j, twice := first[name]; twice {
		v.Add(at, "choose another", "%q is the name of %s[%d] too", name, list, j)
		return
	}
	first[name] = i
}

// camel turns my-app into myApp.
func camel(name string) string {
	parts := strings.FieldsFunc(name, func(r rune) bool { return r == '-' })
	for i := 1; i < len(parts); i++ {
		r := []rune(parts[i])
		parts[i] = strings.ToUpper(string(r[:1])) + string(r[1:])
	}
	return strings.Join(parts, "")
}
