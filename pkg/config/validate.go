package config

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	kfield "k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/corollary-dev/corollary/pkg/fieldpath"
)

// validator collects what is wrong with one operator's values. It says nothing about a value that was already
// reported as unreadable or of the wrong type.
type validator struct {
	*File
	errs Errors
}

func (f *File) validate() Errors {
	v := &validator{File: f}
	v.root()
	if v.Source != nil {
		v.source()
	} else {
		v.watch()
	}
	v.parameters()
	v.variables()
	v.inputs()
	v.rules()
	v.downstreams()
	v.conventions()
	v.needs()
	if v.Source == nil { // which reports deletion as not supported
		v.deletion()
	}
	v.status()
	v.guard()
	if v.Conversion != nil {
		v.conversion(conversionKey+".", v.Conversion)
	}
	v.requires()
	return v.errs
}

func (v *validator) add(path, fix, format string, args ...any) {
	if !v.reported(path) {
		v.errs = append(v.errs, v.Errorf(path, fix, format, args...))
	}
}

// required reports a text that is missing, and reports whether it is there.
func (v *validator) required(path, value, fix string) bool {
	if strings.TrimSpace(value) == "" {
		v.add(path, fix, "required value is missing")
		return false
	}
	return true
}

func (v *validator) root() {
	if v.required("metadata.name", v.Metadata.Name, "name the operator") {
		v.form(dnsLabel, "metadata.name", v.Metadata.Name, v.Metadata.Name)
	}
	v.serviceAccount()
	if v.Activation != "" && v.Activation != EveryCluster {
		v.form(dnsLabel, "activation", v.Activation, v.Activation)
	}
	v.delimiters()
	v.helpers()
	const second, minute = Duration(time.Second), Duration(time.Minute)
	if v.Retry.MinDelay < second {
		v.add("retry.minDelay", "write at least 1s", "%s is too short, a failure must wait", v.Retry.MinDelay)
	}
	if v.Retry.MaxDelay < v.Retry.MinDelay && v.Retry.MinDelay >= second {
		v.add("retry.maxDelay", "write at least "+v.Retry.MinDelay.String(), "%s is less than minDelay, which is %s", v.Retry.MaxDelay,
			v.Retry.MinDelay)
	}
	if v.ResyncPeriod != 0 && v.ResyncPeriod < minute {
		v.add("resyncPeriod", "write at least 1m, or 0s for never", "%s is too short", v.ResyncPeriod)
	}
}

func (v *validator) serviceAccount() {
	const at = "serviceAccount"
	account := v.ServiceAccount
	if account == nil {
		return
	}
	if v.required(at+".namespace", account.Namespace, "name the namespace of the ServiceAccount") {
		v.form(namespaceName, at+".namespace", account.Namespace, account.Namespace)
	}
	if v.required(at+".name", account.Name, "name the ServiceAccount") {
		v.form(serviceAccountName, at+".name", account.Name, account.Name)
	}
}

func (v *validator) delimiters() {
	const fix = `write two different texts, such as ["[[", "]]"]`
	if v.reported("delimiters") {
		return
	}
	d := v.Delimiters
	switch {
	case len(d) != 2:
		v.add("delimiters", fix, "found %d delimiters, wanted the left and the right one", len(d))
	case d[0] == d[1]:
		v.add("delimiters", fix, "the delimiters are the same: %q", d[0])
	default:
		for i, s := range d {
			if s == "" || strings.ContainsAny(s, " \t\r\n") {
				v.add(fmt.Sprintf("delimiters[%d]", i), fix, "%q is empty or has white space", s)
			}
		}
	}
}

func (v *validator) watch() {
	v.object("watch", v.Watch.APIVersion, v.Watch.Kind)
	if v.Watch.Namespaces != nil && len(v.Watch.Namespaces) == 0 {
		v.add("watch.namespaces", "leave it out to watch all namespaces", "the list is empty, so nothing would be watched")
	}
	v.namespaces("watch.namespaces", v.Watch.Namespaces)
	v.selector("watch.labelSelector", v.Watch.LabelSelector)
	v.selector("watch.namespaceSelector", v.Watch.NamespaceSelector)
	v.matchConditions()
	v.kindSchema()
	v.acknowledged()
}

func (v *validator) matchConditions() {
	first := map[string]int{}
	for i, c := range v.Watch.MatchConditions {
		at := fmt.Sprintf("watch.matchConditions[%d]", i)
		v.required(at+".expression", c.Expression, "write a CEL expression that is true for an upstream")
		if !v.required(at+".name", c.Name, "name the condition") {
			continue
		}
		if j, twice := first[c.Name]; twice {
			v.add(at+".name", "rename one of them", "%q is already the name of item %d", c.Name, j)
		}
		first[c.Name] = i
		v.form(qualifiedName, at+".name", c.Name, c.Name)
	}
}

func (v *validator) variables() {
	first := map[string]int{}
	for i, one := range v.Variables {
		at := fmt.Sprintf("variables[%d]", i)
		v.required(at+".expression", one.Expression, "write a CEL expression")
		v.entryName("variables", i, one.Name, "name the variable: templates and CEL read it by this name", first)
	}
}

func (v *validator) selector(path string, s *metav1.LabelSelector) {
	if s == nil {
		return
	}
	at := kfield.NewPath(path)
	for _, err := range metavalidation.ValidateLabelSelector(s, metavalidation.LabelSelectorValidationOptions{}, at) {
		problem, _, _ := strings.Cut(err.Detail, " (e.g.")
		switch bad := err.BadValue.(type) {
		case string:
			if bad != "" {
				problem = fmt.Sprintf("%q: %s", clip(bad), problem)
			}
		case metav1.LabelSelectorOperator:
			problem = fmt.Sprintf("%q: %s", clip(string(bad)), problem)
		}
		v.add(err.Field, "write matchLabels, or matchExpressions with In, NotIn, Exists or DoesNotExist", "%s", problem)
	}
}

func (v *validator) namespaces(path string, names []string) {
	first := map[string]int{}
	for i, name := range names {
		at := fmt.Sprintf("%s[%d]", path, i)
		if j, twice := first[name]; twice {
			v.add(at, "remove one of them", "%q is already item %d", name, j)
			continue
		}
		first[name] = i
		v.form(namespaceName, at, name, name)
	}
}

func (v *validator) rules() {
	for i, r := range v.Validate {
		at := fmt.Sprintf("validate[%d]", i)
		v.required(at+".rule", r.Rule, "write a CEL expression that is true for a valid upstream")
		if r.FieldPath != "" {
			v.fieldPath(at+".fieldPath", r.FieldPath)
		}
	}
}

// fieldPath parses a path and reports it where it is none.
func (v *validator) fieldPath(at, text string) (fieldpath.Path, bool) {
	p, err := fieldpath.Parse(text)
	if err == nil {
		return p, true
	}
	v.badPath(at, text, err)
	return nil, false
}

// syntax is a form that Kubernetes wants of a name: how messages call it and how to write it. Its own messages
// are of a length that hides the rest.
type syntax struct {
	name, fix string
	check     func(string) []string
}

var (
	dnsLabel = syntax{"a DNS label", "write at most 63 small letters, digits and -, beginning and ending with a letter or digit",
		validation.IsDNS1123Label}
	namespaceName      = syntax{"a namespace's name", dnsLabel.fix, validation.IsDNS1123Label}
	serviceAccountName = syntax{"a ServiceAccount's name", "write small letters, digits, - and .", validation.IsDNS1123Subdomain}
	leaseName          = syntax{"a Lease's name", "write small letters, digits, - and .", validation.IsDNS1123Subdomain}
	hostName           = syntax{"a name in DNS", "write one such as active.example.com", func(s string) []string {
		if len(s) <= maxName && hostNames.MatchString(s) {
			return nil
		}
		return []string{"wrong"}
	}}
	identityName = syntax{"an identity", "write at most 63 letters, digits, - _ ., beginning and ending with a letter or digit",
		validation.IsValidLabelValue}
	kindName = syntax{"a kind", "write letters and digits, beginning with a letter, such as Deployment", func(s string) []string {
		return validation.IsDNS1035Label(strings.ToLower(s))
	}}
	qualifiedName = syntax{"a key that Kubernetes takes", "write NAME or DOMAIN/NAME; NAME has at most 63 letters, digits, - _ ., " +
		"beginning and ending with a letter or digit, DOMAIN is in small letters", validation.IsQualifiedName}
	labelValue = syntax{"a label's value", "write at most 63 letters, digits, - _ ., beginning and ending with a letter or digit",
		validation.IsValidLabelValue}
	group   = syntax{"GROUP/VERSION", "write GROUP in small letters, digits, - and ., such as apps/v1", validation.IsDNS1123Subdomain}
	version = syntax{"GROUP/VERSION", "write VERSION in small letters and digits, such as apps/v1", validation.IsDNS1035Label}
)

// form reports a value of path that has not the form s; part is what of the value must have it.
func (v *validator) form(s syntax, path, value, part string) bool {
	if len(s.check(part)) > 0 {
		v.add(path, s.fix, "%q is not %s", clip(value), s.name)
		return false
	}
	return true
}

// hostNames matches names in DNS.
var hostNames = regexp.MustCompile(hostNamePattern)

// coreVersion matches the versions of the core group, which has no name.
var coreVersion = regexp.MustCompile(`^v[0-9]+[a-z0-9]*$`)

// object checks an apiVersion and kind, which every reference to a kind has.
func (v *validator) object(path, apiVersion, kind string) {
	if v.required(path+".apiVersion", apiVersion, "write GROUP/VERSION, or v1 for the core group") {
		v.apiVersion(path+".apiVersion", apiVersion)
	}
	if v.required(path+".kind", kind, "write the kind, such as Deployment") {
		v.form(kindName, path+".kind", kind, kind)
	}
}

func (v *validator) apiVersion(path, s string) {
	g, ver, grouped := strings.Cut(s, "/")
	if !grouped {
		if !coreVersion.MatchString(s) {
			v.add(path, "write GROUP/VERSION, or v1 for the core group", "%q has no version", clip(s))
		}
		return
	}
	if v.form(group, path, s, g) {
		v.form(version, path, s, ver)
	}
}

// badPath reports a text that is not a path, in the words of the path's parser.
func (v *validator) badPath(at, text string, err error) {
	var pe *fieldpath.ParseError
	if errors.As(err, &pe) {
		fix := pe.Fix
		if _, err := fieldpath.Parse("." + text); pe.Offset == 0 && err != nil {
			fix = "write one such as .spec.replicas" // a dot alone does not fix it
		}
		v.add(at, fix, "%q is not a path: at character %d, %s", clip(text), pe.Offset+1, pe.Problem)
		return
	}
	v.add(at, "", "%q is not a path: %v", clip(text), err)
}
