package config

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// memberName is what CEL can select from a map: downstreams.NAME, inputs.NAME, params.NAME.
const memberName = `^[a-z][a-zA-Z0-9_]*$`

var memberNameRE = regexp.MustCompile(memberName)

// celWords cannot be selected from a map. The words that CEL only reserves, such as namespace, can: downstreams.namespace.
var celWords = []string{"false", "in", "null", "true"}

// member checks a name by which expressions select from the map of that name in CEL.
func (v *validator) member(at, list, name string) bool {
	misread := v.misread(at)
	switch {
	case misread != nil:
		v.errs = append(v.errs, misread)
	case strings.Contains(name, "-") && memberNameRE.MatchString(camel(name)):
		v.add(at, "write "+camel(name), "%q has a hyphen, and CEL would read %s.%s as a subtraction", clip(name), list, clip(name))
	case !memberNameRE.MatchString(name):
		v.add(at, "write letters, digits and _, beginning with a small letter: CEL reads "+list+".NAME", "%q cannot be used in CEL", clip(name))
	case slices.Contains(celWords, name):
		v.add(at, "choose another", "%q is a word of CEL's own", name)
	default:
		return true
	}
	return false
}

// entryName checks the name of entry i of downstreams or inputs: it is there, CEL can select by it, and no entry before has
// it. first has the entries so far by their names; fix says what the name is for.
func (v *validator) entryName(list string, i int, name, fix string, first map[string]int) {
	at := fmt.Sprintf("%s[%d].name", list, i)
	if !v.required(at, name, fix) || !v.member(at, list, name) {
		return
	}
	if j, twice := first[name]; twice {
		v.add(at, "choose another", "%q is the name of %s[%d] too", name, list, j)
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
