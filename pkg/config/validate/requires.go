package validate

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/corollary-dev/corollary/pkg/config/document"
	"github.com/corollary-dev/corollary/pkg/config/forms"
)

var atLeastRE = regexp.MustCompile(forms.AtLeastPattern)

func checkRequires(v *validator) {
	r := v.Requires
	if r == nil {
		return
	}
	for _, wanted := range []struct{ path, value, example string }{
		{"requires.corollary", r.Corollary, ">=0.1.0"}, {"requires.kubernetes", r.Kubernetes, ">=1.30"},
	} {
		if wanted.value != "" && !atLeastRE.MatchString(wanted.value) {
			v.Add(wanted.path, `write the oldest version, such as "`+wanted.example+`"`, "%q is not >=VERSION", document.Clip(wanted.value))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.CRDVersions)) {
		at := "requires.crdVersions['" + name + "']"
		if _, _, ok := strings.Cut(name, "."); !ok || len(validation.IsDNS1123Subdomain(name)) > 0 {
			v.Add(at, "write PLURAL.GROUP, such as widgets.example.com",
				"%q is not the name of a CustomResourceDefinition", document.Clip(name))
		}
		if len(r.CRDVersions[name]) == 0 {
			v.Add(at, "name the versions that must be served, such as [v1]", "required value is missing")
		}
		for i, s := range r.CRDVersions[name] {
			v.form(forms.CRDVersion, fmt.Sprintf("%s[%d]", at, i), s, s)
		}
	}
}
