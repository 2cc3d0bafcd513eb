package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// qualified matches names with a domain, as in labels, annotations, finalizers and field managers:
// tools.example.com/paused.
var qualified = regexp.MustCompile(`\b[a-z0-9][-a-z0-9]*(?:\.[a-z0-9][-a-z0-9]*)*\.[a-z]{2,}/[A-Za-z0-9][-A-Za-z0-9_.]*`)

// allowed are names with a domain that the code may contain. Every name in a cluster comes from a config file, even as
// a default, so each entry says which other kind of name it is.
var allowed = []struct {
	pattern *regexp.Regexp
	reason  string
}{
	{regexp.MustCompile(`^corollary\.dev/v1alpha1$`), "the apiVersion of the config file itself"},
	{regexp.MustCompile(`^([a-z0-9-]+\.)+k8s\.io/v[0-9]+((alpha|beta)[0-9]+)?$`), "an API group and version of Kubernetes"},
	{regexp.MustCompile(`^([a-z0-9-]+\.)+k8s\.io/[A-Z][A-Za-z]+$`), "an API group and kind of Kubernetes"},
	{regexp.MustCompile(`^([a-z0-9-]+\.)*example\.(com|org|net)/`), "an example in a help text or in a message"},
	{regexp.MustCompile(`^www\.w3\.org/2000$`), "the namespace of SVG"},
	{regexp.MustCompile(`^json-schema\.org/draft`), "the dialect of the published JSON Schema"},
	{regexp.MustCompile(`^operators\.coreos\.com/v1alpha1$`), "the API of the Operator Lifecycle Manager"},
	{regexp.MustCompile(`^helm\.sh/resource-policy$`), "what Helm reads, in values of its chart"},
	{regexp.MustCompile(`^cert-manager\.io/inject-ca-from$`), "what cert-manager's cainjector reads"},
	{regexp.MustCompile(`^(pv|volume|volume\.beta|deployment)\.kubernetes\.io/[a-z-]+$`), "what Kubernetes' controllers write, and a backup leaves out"},
	{regexp.MustCompile(`^github\.com/corollary-dev/corollary`), "the address of the project"},
}

// named are fields that name something in a cluster: a text in the code for one of them is a naming convention even
// without a domain.
var named = map[string]bool{
	"FieldManager": true, "Finalizers": true, "Finalizer": true,
	"LeaderElectionID": true, "LeaderElectionNamespace": true, "LeaseName": true,
	"ReportingController": true, "ReportingInstance": true,
}

// naming are calls that take such a name as an argument.
var naming = map[string]bool{
	"AddFinalizer": true, "ContainsFinalizer": true, "RemoveFinalizer": true, "SetFinalizers": true,
	"GetEventRecorder": true, "GetEventRecorderFor": true, "NewRecorder": true,
}

// convention is a naming convention that is compiled in.
type convention struct {
	pos  token.Pos
	name string
}

// conventions finds the naming conventions in a file.
func conventions(file *ast.File) []convention {
	var found []convention
	tags := map[*ast.BasicLit]bool{}
	report := func(value ast.Expr, where string) {
		if text := text(value); text != "" {
			found = append(found, convention{value.Pos(), where + " " + text})
		}
	}
	ast.Inspect(file, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.Field:
			tags[node.Tag] = true
		case *ast.BasicLit:
			if !tags[node] {
				found = append(found, domains(node)...)
			}
		case *ast.KeyValueExpr:
			if key, ok := node.Key.(*ast.Ident); ok && named[key.Name] {
				report(node.Value, key.Name)
			}
		case *ast.AssignStmt:
			for i, left := range node.Lhs {
				if field, ok := left.(*ast.SelectorExpr); ok && i < len(node.Rhs) && named[field.Sel.Name] {
					report(node.Rhs[i], field.Sel.Name)
				}
			}
		case *ast.CallExpr:
			if call, ok := node.Fun.(*ast.SelectorExpr); ok && naming[call.Sel.Name] {
				for _, argument := range node.Args {
					report(argument, call.Sel.Name)
				}
			}
		}
		return true
	})
	return found
}

// text returns the value of a string literal, or "" for other expressions.
func text(value ast.Expr) string {
	literal, ok := value.(*ast.BasicLit)
	if !ok || literal.Kind != token.STRING {
		return ""
	}
	said, err := strconv.Unquote(literal.Value)
	if err != nil {
		return literal.Value
	}
	return said
}

// domains finds names with a domain in a string literal.
func domains(literal *ast.BasicLit) []convention {
	var found []convention
	for _, name := range qualified.FindAllString(text(literal), -1) {
		name = strings.TrimRight(name, ".-_") // the end of a sentence
		if !isAllowed(name) {
			found = append(found, convention{literal.Pos(), name})
		}
	}
	return found
}

// isAllowed reports whether the code may contain a name with a domain.
func isAllowed(name string) bool {
	for _, exception := range allowed {
		if exception.pattern.MatchString(name) {
			return true
		}
	}
	return false
}

func TestNoNamingConventionIsCompiledIn(t *testing.T) {
	for _, s := range product(t) {
		for _, found := range conventions(s.file) {
			t.Errorf("%s: %s: a name that ends up in the cluster has to come from the config", s.at(found.pos), found.name)
		}
	}
}

func TestConventions(t *testing.T) {
	tests := []struct {
		code, want, reason string
	}{
		{`const key = "tools.acme.io/paused"`, "tools.acme.io/paused", "a label with a domain"},
		{`const key = "app.kubernetes.io/name"`, "app.kubernetes.io/name", "Kubernetes' recommended labels are a convention too"},
		{`const key = "corollary.dev/hash"`, "corollary.dev/hash", "our own domain"},
		{`const version = "corollary.dev/v1alpha1"`, "", "the config's own apiVersion"},
		{`const version = "networking.k8s.io/v1"`, "", "an API group and version"},
		{`const kind = "storage.k8s.io/StorageClass"`, "", "an API group and kind"},
		{`const key = "node.k8s.io/role"`, "node.k8s.io/role", "a label in a domain of Kubernetes"},
		{`const help = "set a label, say tools.example.com/app."`, "", "an example"},
		{"const text = `\n  a: b.acme.io/c\n`", "b.acme.io/c", "a raw string of several lines"},
		{"type t struct { F int `json:\"acme.io/f\"` }", "", "a struct tag"},
		{`import _ "acme.io/pkg"`, "", "an import"},
		{`const media = "application/merge-patch+json"`, "", "a media type"},
		{`var o = Options{FieldManager: "corollary"}`, "FieldManager corollary", "a name without a domain"},
		{`var o = Options{FieldManager: manager}`, "", "a name from elsewhere"},
		{`func f() { o.LeaderElectionID = "corollary" }`, "LeaderElectionID corollary", "an assignment"},
		{`var r = m.GetEventRecorderFor("corollary")`, "GetEventRecorderFor corollary", "a call"},
	}
	for _, test := range tests {
		file, err := parser.ParseFile(token.NewFileSet(), "x.go", "package x\n"+test.code, 0)
		if err != nil {
			t.Fatalf("%s: %v", test.reason, err)
		}
		var got []string
		for _, found := range conventions(file) {
			got = append(got, found.name)
		}
		if strings.Join(got, ", ") != test.want {
			t.Errorf("%s: %s: found %q, want %q", test.reason, test.code, got, test.want)
		}
	}
}
