package functions

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestEveryFunctionHasOneGroup: a function of sprig is on the list or refused, and each function is in one group. A new
// version of sprig adds none, and takes none away.
func TestEveryFunctionHasOneGroup(t *testing.T) {
	groups := map[string][]string{"own": slices.Collect(maps.Keys(own))}
	for name, group := range map[string]string{"textTemplate": textTemplate, "light": light, "counted": counted, "numeric": numeric} {
		groups[name] = strings.Fields(group)
		for _, f := range groups[name] {
			if _, ok := sprigFunctions[f]; ok == (name == "textTemplate") {
				t.Errorf("%s is in %s, and sprig has it: %t", f, name, ok)
			}
		}
	}
	in := map[string]string{}
	for group, names := range groups {
		for _, name := range names {
			if in[name] != "" {
				t.Errorf("%s is in %s and in %s", name, in[name], group)
			}
			in[name] = group
			if _, _, no := Refused(name); no {
				t.Errorf("%s is both refused and there", name)
			}
		}
	}
	for name := range sprigFunctions {
		if _, _, no := Refused(name); in[name] == "" && !no {
			t.Errorf("sprig has %s: put it on the list, or refuse it", name)
		}
	}
}

// TestCallsAreKnown: what is known of calls is of functions that exist, and of each function of text/template.
func TestCallsAreKnown(t *testing.T) {
	for name := range nullArguments {
		if !Exists(name) && name != "omitempty" && name != "include" {
			t.Errorf("%s takes null and is no function", name)
		}
	}
	for _, name := range strings.Fields(textTemplate) {
		if _, ok := builtinArity[name]; !ok {
			t.Errorf("the arguments of %s are unknown", name)
		}
	}
}

// TestPageListsFunctions: docs/templates.md lists each function, but for those with must before a name that is there
// too.
func TestPageListsFunctions(t *testing.T) {
	page, err := os.ReadFile("../../../docs/templates.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## Functions\n")
	section, _, _ = strings.Cut(section, "\nThose that have a `must")
	listed := map[string]bool{"omitempty": true, "param": true, "variable": true, "input": true, "downstream": true,
		"item": true, "include": true}
	for _, m := range regexp.MustCompile("`([a-zA-Z0-9]+)`").FindAllStringSubmatch(section, -1) {
		if !Exists(m[1]) && !listed[m[1]] {
			t.Errorf("the page lists %s, which does not exist", m[1])
		}
		listed[m[1]] = true
	}
	for _, name := range Names() {
		without, isMust := strings.CutPrefix(name, "must")
		if !listed[name] && (!isMust || !listed[strings.ToLower(without[:1])+without[1:]]) {
			t.Errorf("the page does not list %s", name)
		}
	}
}
