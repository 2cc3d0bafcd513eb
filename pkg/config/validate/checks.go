package validate

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	kfield "k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/config/document"
	"github.com/corollary-dev/corollary/pkg/config/forms"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
)

// validator collects what is wrong with one operator's values. It says nothing about a value that was already
// reported as unreadable or of the wrong type.
type validator struct {
	document.Problems
	*config.Operator
	unread bool // conventions may be in another file that could not be read: then a missing key is not an error
}

// required reports a text that is missing, and reports whether it is there.
func (v *validator) required(path, value, fix string) bool {
	if strings.TrimSpace(value) == "" {
		v.Add(path, fix, "required value is missing")
		return false
	}
	return true
}

// form reports a value of path that has not the form s; part is what of the value must have it.
func (v *validator) form(s forms.Syntax, path, value, part string) bool {
	if len(s.Check(part)) > 0 {
		v.Add(path, s.Fix, "%q is not %s", document.Clip(value), s.Name)
		return false
	}
	return true
}

// coreVersion matches the versions of the core group, which has no name.
var coreVersion = regexp.MustCompile(`^v[0-9]+[a-z0-9]*$`)

// checkObject checks an apiVersion and kind, which every reference to a kind has.
func checkObject(v *validator, path, apiVersion, kind string) {
	if v.required(path+".apiVersion", apiVersion, "write GROUP/VERSION, or v1 for the core group") {
		checkAPIVersion(v, path+".apiVersion", apiVersion)
	}
	if v.required(path+".kind", kind, "write the kind, such as Deployment") {
		v.form(forms.KindName, path+".kind", kind, kind)
	}
}

func checkAPIVersion(v *validator, path, s string) {
	g, ver, grouped := strings.Cut(s, "/")
	if !grouped {
		if !coreVersion.MatchString(s) {
			v.Add(path, "write GROUP/VERSION, or v1 for the core group", "%q has no version", document.Clip(s))
		}
		return
	}
	if v.form(forms.Group, path, s, g) {
		v.form(forms.Version, path, s, ver)
	}
}

// badPath reports a text that is not a path, in the words of the path's parser.
func badPath(v *validator, at, text string, err error) {
	var pe *fieldpath.ParseError
	if errors.As(err, &pe) {
		fix := pe.Fix
		if _, err := fieldpath.Parse("." + text); pe.Offset == 0 && err != nil {
			fix = "write one such as .spec.replicas" // a dot alone does not fix it
		}
		v.Add(at, fix, "%q is not a path: at character %d, %s", document.Clip(text), pe.Offset+1, pe.Problem)
		return
	}
	v.Add(at, "", "%q is not a path: %v", document.Clip(text), err)
}

// checkFieldPath parses a path and reports it where it is none.
func checkFieldPath(v *validator, at, text string) (fieldpath.Path, bool) {
	p, err := fieldpath.Parse(text)
	if err == nil {
		return p, true
	}
	badPath(v, at, text, err)
	return nil, false
}

func checkNamespaces(v *validator, path string, names []string) {
	first := map[string]int{}
	for i, name := range names {
		at := fmt.Sprintf("%s[%d]", path, i)
		if j, twice := first[name]; twice {
			v.Add(at, "remove one of them", "%q is already item %d", name, j)
			continue
		}
		first[name] = i
		v.form(forms.NamespaceName, at, name, name)
	}
}

func checkSelector(v *validator, path string, s *metav1.LabelSelector) {
	if s == nil {
		return
	}
	at := kfield.NewPath(path)
	for _, err := range metavalidation.ValidateLabelSelector(s, metavalidation.LabelSelectorValidationOptions{}, at) {
		problem, _, _ := strings.Cut(err.Detail, " (e.g.")
		switch bad := err.BadValue.(type) {
		case string:
			if bad != "" {
				problem = fmt.Sprintf("%q: %s", document.Clip(bad), problem)
			}
		case metav1.LabelSelectorOperator:
			problem = fmt.Sprintf("%q: %s", document.Clip(string(bad)), problem)
		}
		v.Add(err.Field, "write matchLabels, or matchExpressions with In, NotIn, Exists or DoesNotExist", "%s", problem)
	}
}
