package load

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/config/document"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
)

// EnvPrefix begins the names of environment variables that override config: COROLLARY_SET_<anything>, whose
// value is what --set takes. <anything> only orders them: later names, by byte order, win.
const EnvPrefix = "COROLLARY_SET_"

// override is one value from outside the files.
type override struct {
	source   string // as errors name it
	operator string
	path     fieldpath.Path
	value    any
	index    document.Index // of the value, for what YAML made of it
}

// readOverrides reads the environment and then the flags, in the order in which they are applied.
func readOverrides(o Options) ([]override, config.Errors) {
	var out []override
	var errs config.Errors
	take := func(source, text string) {
		ov, err := parseOverride(source, text)
		if err != nil {
			errs = append(errs, err)
			return
		}
		out = append(out, *ov)
	}
	for _, e := range slices.Sorted(slices.Values(o.Env)) {
		name, value, _ := strings.Cut(e, "=")
		if strings.HasPrefix(name, EnvPrefix) && !injected(name, value) {
			take("environment "+name, value)
		}
	}
	for _, s := range o.Set {
		take("--set "+document.Clip(s), s)
	}
	return out, errs
}

// ServiceLink matches the names of the environment variables that Kubernetes injects for the Services of a namespace.
var ServiceLink = regexp.MustCompile(`(_SERVICE_HOST|_SERVICE_PORT(_[A-Z0-9_]+)?|_PORT(_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)$`)

// injected reports whether a variable is one that Kubernetes sets for a Service, such as one called
// corollary-set-a: its name ends so, and its value (an address, a port, a protocol) is no override.
func injected(name, value string) bool {
	_, path, ok := strings.Cut(value, ":")
	override := ok && (strings.HasPrefix(path, ".") || strings.HasPrefix(path, "['"))
	return ServiceLink.MatchString(name) && !override
}

const overrideForm = "write OPERATOR:.path=value, for instance app:.watch.namespaces=[a, b]"

// parseOverride reads OPERATOR:path=value. The value is YAML, read as it would be after "key: " in the file;
// empty or null takes the field away.
func parseOverride(source, text string) (*override, *config.Error) {
	fail := func(fix, format string, args ...any) *config.Error {
		return &config.Error{File: source, Problem: fmt.Sprintf(format, args...), Fix: fix}
	}
	operator, rest, ok := strings.Cut(text, ":")
	if !ok || operator == "" || strings.ContainsAny(operator, ".=[") {
		return nil, fail(overrideForm, "it does not begin with an operator name and a colon")
	}
	at := assignment(rest)
	if at < 0 {
		return nil, fail(overrideForm, "no = follows the path")
	}
	path, err := fieldpath.Parse(rest[:at])
	if err != nil {
		return nil, fail("", "%v", err)
	}
	doc := document.ParseDocument(source, []byte(document.OverrideKey+": "+rest[at+1:]))
	if len(doc.Errs) > 0 {
		fix := "quote the value as YAML does"
		if len(doc.Broken) > 0 {
			fix = doc.Errs[0].Fix
		}
		return nil, &config.Error{File: source, Path: document.Display(path), Problem: doc.Errs[0].Problem, Fix: fix}
	}
	if len(doc.Values) > 1 {
		return nil, fail(overrideForm, "the value has lines that are not part of it")
	}
	return &override{source: source, operator: operator, path: path,
		value: doc.Values[document.OverrideKey], index: doc.Index}, nil
}

// assignment returns where the = after the path is: the first outside of brackets and quotes, or -1.
func assignment(s string) int {
	quoted, bracket := false, false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case quoted && c == '\\':
			i++
		case c == '\'' && bracket:
			quoted = !quoted
		case quoted:
		case c == '[':
			bracket = true
		case c == ']':
			bracket = false
		case c == '=' && !bracket:
			return i
		}
	}
	return -1
}
