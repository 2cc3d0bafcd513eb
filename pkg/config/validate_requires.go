package config

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	utilversion "k8s.io/apimachinery/pkg/util/version"
)

const atLeastPattern = `^>= ?v?[0-9]+\.[0-9]+(\.[0-9]+)?$`

var atLeastRE = regexp.MustCompile(atLeastPattern)

func (v *validator) requires() {
	r := v.Requires
	if r == nil {
		return
	}
	for _, wanted := range []struct{ path, value, example string }{
		{"requires.corollary", r.Corollary, ">=0.1.0"}, {"requires.kubernetes", r.Kubernetes, ">=1.30"},
	} {
		if wanted.value != "" && !atLeastRE.MatchString(wanted.value) {
			v.add(wanted.path, `write the oldest version, such as "`+wanted.example+`"`, "%q is not >=VERSION", clip(wanted.value))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.CRDVersions)) {
		at := "requires.crdVersions['" + name + "']"
		if _, _, ok := strings.Cut(name, "."); !ok || len(validation.IsDNS1123Subdomain(name)) > 0 {
			v.add(at, "write PLURAL.GROUP, such as widgets.example.com", "%q is not the name of a CustomResourceDefinition", clip(name))
		}
		if len(r.CRDVersions[name]) == 0 {
			v.add(at, "name the versions that must be served, such as [v1]", "required value is missing")
		}
		for i, s := range r.CRDVersions[name] {
			v.form(crdVersion, fmt.Sprintf("%s[%d]", at, i), s, s)
		}
	}
}

var crdVersion = syntax{"a version", "write small letters and digits, such as v1beta1", validation.IsDNS1035Label}

// AtLeast is the version of ">=VERSION", nil for an empty or wrong text.
func AtLeast(wanted string) *utilversion.Version {
	v, err := utilversion.ParseGeneric(strings.TrimSpace(strings.TrimPrefix(wanted, ">=")))
	if err != nil {
		return nil
	}
	return v
}

// requiresProgram holds the config against the version of this program. A program that was built without one satisfies every config.
func (f *File) requiresProgram(program string) Errors {
	if f.Requires == nil {
		return nil
	}
	wanted := AtLeast(f.Requires.Corollary)
	have, err := utilversion.ParseSemantic(program)
	known := err == nil && have.Major()+have.Minor()+have.Patch() > 0
	if wanted == nil || !known || have.AtLeast(wanted) {
		return nil
	}
	return Errors{f.Errorf("requires.corollary", "upgrade Corollary, or use the config for its version",
		"this is Corollary %s, and the config requires %s", have, f.Requires.Corollary)}
}
