package validate

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

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

// Operator checks an operator. unread says that conventions may be in another file that could not be read: then a missing key is not an error.
func Operator(doc *document.Document, op *config.Operator, unread bool) config.Errors {
	v := &validator{Problems: document.Problems{Document: doc}, Operator: op, unread: unread}
	checkRoot(v)
	if v.Source != nil {
		checkSource(v)
	} else {
		checkWatch(v)
	}
	checkParameters(v)
	checkVariables(v)
	checkInputs(v)
	checkRules(v)
	checkDownstreams(v)
	checkConventions(v)
	checkNeeds(v)
	if v.Source == nil { // which reports deletion as not supported
		checkDeletion(v)
	}
	checkStatus(v)
	checkGuard(v)
	if v.Conversion != nil {
		checkConversion(v, "conversion.", v.Conversion)
	}
	checkRequires(v)
	return v.Errs
}

// required reports a text that is missing, and reports whether it is there.
func (v *validator) required(path, value, fix string) bool {
	if strings.TrimSpace(value) == "" {
		v.Add(path, fix, "required value is missing")
		return false
	}
	return true
}

func checkRoot(v *validator) {
	if v.required("metadata.name", v.Metadata.Name, "name the operator") {
		v.form(forms.DnsLabel, "metadata.name", v.Metadata.Name, v.Metadata.Name)
	}
	checkServiceAccount(v)
	if v.Activation != "" && v.Activation != config.EveryCluster {
		v.form(forms.DnsLabel, "activation", v.Activation, v.Activation)
	}
	checkDelimiters(v)
	const second, minute = config.Duration(time.Second), config.Duration(time.Minute)
	if v.Retry.MinDelay < second {
		v.Add("retry.minDelay", "write at least 1s", "%s is too short, a failure must wait", v.Retry.MinDelay)
	}
	if v.Retry.MaxDelay < v.Retry.MinDelay && v.Retry.MinDelay >= second {
		v.Add("retry.maxDelay", "write at least "+v.Retry.MinDelay.String(), "%s is less than minDelay, which is %s", v.Retry.MaxDelay,
			v.Retry.MinDelay)
	}
	if v.ResyncPeriod != 0 && v.ResyncPeriod < minute {
		v.Add("resyncPeriod", "write at least 1m, or 0s for never", "%s is too short", v.ResyncPeriod)
	}
}

func checkServiceAccount(v *validator) {
	const at = "serviceAccount"
	account := v.ServiceAccount
	if account == nil {
		return
	}
	if v.required(at+".namespace", account.Namespace, "name the namespace of the ServiceAccount") {
		v.form(forms.NamespaceName, at+".namespace", account.Namespace, account.Namespace)
	}
	if v.required(at+".name", account.Name, "name the ServiceAccount") {
		v.form(forms.ServiceAccountName, at+".name", account.Name, account.Name)
	}
}

func checkDelimiters(v *validator) {
	const fix = `write two different texts, such as ["[[", "]]"]`
	if v.Reported("delimiters") {
		return
	}
	d := v.Delimiters
	switch {
	case len(d) != 2:
		v.Add("delimiters", fix, "found %d delimiters, wanted the left and the right one", len(d))
	case d[0] == d[1]:
		v.Add("delimiters", fix, "the delimiters are the same: %q", d[0])
	default:
		for i, s := range d {
			if s == "" || strings.ContainsAny(s, " \t\r\n") {
				v.Add(fmt.Sprintf("delimiters[%d]", i), fix, "%q is empty or has white space", s)
			}
		}
	}
}

func checkWatch(v *validator) {
	checkObject(v, "watch", v.Watch.APIVersion, v.Watch.Kind)
	if v.Watch.Namespaces != nil && len(v.Watch.Namespaces) == 0 {
		v.Add("watch.namespaces", "leave it out to watch all namespaces", "the list is empty, so nothing would be watched")
	}
	checkNamespaces(v, "watch.namespaces", v.Watch.Namespaces)
	checkSelector(v, "watch.labelSelector", v.Watch.LabelSelector)
	checkSelector(v, "watch.namespaceSelector", v.Watch.NamespaceSelector)
	checkMatchConditions(v)
	checkKindSchema(v)
	checkAcknowledged(v)
}

func checkMatchConditions(v *validator) {
	first := map[string]int{}
	for i, c := range v.Watch.MatchConditions {
		at := fmt.Sprintf("watch.matchConditions[%d]", i)
		v.required(at+".expression", c.Expression, "write a CEL expression that is true for an upstream")
		if !v.required(at+".name", c.Name, "name the condition") {
			continue
		}
		if j, twice := first[c.Name]; twice {
			v.Add(at+".name", "rename one of them", "%q is already the name of item %d", c.Name, j)
		}
		first[c.Name] = i
		v.form(forms.QualifiedName, at+".name", c.Name, c.Name)
	}
}

func checkVariables(v *validator) {
	first := map[string]int{}
	for i, one := range v.Variables {
		at := fmt.Sprintf("variables[%d]", i)
		v.required(at+".expression", one.Expression, "write a CEL expression")
		checkEntryName(v, "variables", i, one.Name, "name the variable: templates and CEL read it by this name", first)
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

func checkRules(v *validator) {
	for i, r := range v.Validate {
		at := fmt.Sprintf("validate[%d]", i)
		v.required(at+".rule", r.Rule, "write a CEL expression that is true for a valid upstream")
		if r.FieldPath != "" {
			checkFieldPath(v, at+".fieldPath", r.FieldPath)
		}
	}
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
		checkApiVersion(v, path+".apiVersion", apiVersion)
	}
	if v.required(path+".kind", kind, "write the kind, such as Deployment") {
		v.form(forms.KindName, path+".kind", kind, kind)
	}
}

func checkApiVersion(v *validator, path, s string) {
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
