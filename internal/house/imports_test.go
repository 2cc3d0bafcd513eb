package house

import (
	"slices"
	"strconv"
	"strings"
	"testing"
)

// layers are the packages from the top down. A package may import only packages of lower layers.
var layers = [][]string{
	{"cmd/corollary"},
	{"pkg/cli"},
	{"pkg/cli/check", "pkg/cli/convert", "pkg/cli/crd", "pkg/cli/generate", "pkg/cli/inspect", "pkg/cli/offline", "pkg/cli/operate",
		"pkg/cli/run", "pkg/cli/stored"},
	{"pkg/cli/command"},
	{"pkg/process"},
	{"pkg/backup/selection", "pkg/described", "pkg/release", "pkg/survey/against", "pkg/survey/explain", "pkg/survey/sqlite"},
	{"pkg/conversions", "pkg/survey/findings"},
	{"pkg/backup", "pkg/cases", "pkg/engine", "pkg/generate", "pkg/graph", "pkg/migrate", "pkg/scaffold", "pkg/survey", "pkg/webhook"},
	{"pkg/backup/contents", "pkg/engine/fence", "pkg/engine/gate", "pkg/engine/kindchecks", "pkg/engine/trailing", "pkg/engine/writeback",
		"pkg/generate/healthchecks"},
	{"pkg/engine/loading", "pkg/engine/metrics"},
	{"pkg/engine/work"},
	{"pkg/engine/state"},
	{"pkg/backup/archive", "pkg/informers"},
	{"pkg/informers/connections"},
	{"pkg/informers/kept"},
	{"pkg/memcluster/local"},
	{"pkg/memcluster"},
	{"pkg/memcluster/catalog", "pkg/memcluster/store"},
	{"pkg/memcluster/resource"},
	{"pkg/offline", "pkg/operator/hints", "pkg/reconcile"},
	{"pkg/reconcile/preview"},
	{"pkg/reconcile/attempt"},
	{"pkg/reconcile/before"},
	{"pkg/reconcile/write"},
	{"pkg/reconcile/read"},
	{"pkg/reconcile/act"},
	{"pkg/reconcile/events", "pkg/reconcile/observe"},
	{"pkg/reconcile/departures"},
	{"pkg/reconcile/memory"},
	{"pkg/guard", "pkg/rollout"},
	{"pkg/convert/ownership", "pkg/convert/prove", "pkg/convert/rehub", "pkg/convert/suggest"},
	{"pkg/activation", "pkg/convert", "pkg/crddiff", "pkg/operator/compile", "pkg/shards"},
	{"pkg/activation/locks", "pkg/convert/generator"},
	{"pkg/convert/places"},
	{"pkg/operator/health"},
	{"pkg/operator/desired", "pkg/operator/report"},
	{"pkg/operator/decide"},
	{"pkg/operator/generated", "pkg/operator/marks"},
	{"pkg/operator"},
	{"pkg/crdschema", "pkg/docdiff", "pkg/render/check", "pkg/rules/translate"},
	{"pkg/config/load"},
	{"pkg/config/decode", "pkg/config/schema", "pkg/config/validate"},
	{"pkg/config/document", "pkg/config/forms"},
	{"pkg/config/tags"},
	{"pkg/kinds/discovered"},
	{"pkg/reconcile/counters"},
	{"pkg/apply", "pkg/config", "pkg/drift", "pkg/kinds", "pkg/leadership", "pkg/render", "pkg/rules", "pkg/status"},
	{"pkg/config/conversion", "pkg/config/lock", "pkg/config/query", "pkg/config/random", "pkg/config/staged", "pkg/render/holes",
		"pkg/render/reads"},
	{"pkg/config/common", "pkg/render/program"},
	{"pkg/drift/managed", "pkg/render/functions", "pkg/render/parsing", "pkg/render/skeleton", "pkg/rules/cost"},
	{"pkg/canonical", "pkg/memcluster/answers", "pkg/render/values", "pkg/rules/schema", "pkg/simpleschema", "pkg/source"},
	{"pkg/builtin", "pkg/fieldpath", "pkg/filewatch", "pkg/logging", "pkg/manifest", "pkg/pages", "pkg/redact", "pkg/spelling", "pkg/sqltext",
		"pkg/yamltext"},
}

// never are imports that the layers would allow: pkg/operator only decides, so it must not import a package that
// writes, and pkg/operator/desired only executes templates.
var never = map[string][]string{
	"pkg/operator":         {"pkg/apply", "pkg/render", "pkg/render/program", "pkg/rules"},
	"pkg/operator/compile": {"pkg/apply"},
	"pkg/operator/decide":  {"pkg/apply", "pkg/render", "pkg/render/program", "pkg/rules"},
	"pkg/operator/desired": {"pkg/apply", "pkg/render"},
	"pkg/operator/health":  {"pkg/apply", "pkg/render", "pkg/render/program"},
	"pkg/operator/report":  {"pkg/apply", "pkg/render", "pkg/render/program", "pkg/rules"},
}

// pure are the packages that need neither an API server nor its clients.
var pure = []string{
	"pkg/backup/archive",
	"pkg/backup/contents",
	"pkg/canonical",
	"pkg/config",
	"pkg/config/common",
	"pkg/config/conversion",
	"pkg/config/decode",
	"pkg/config/document",
	"pkg/config/forms",
	"pkg/config/load",
	"pkg/config/lock",
	"pkg/config/query",
	"pkg/config/random",
	"pkg/config/schema",
	"pkg/config/tags",
	"pkg/config/validate",
	"pkg/convert",
	"pkg/convert/generator",
	"pkg/convert/ownership",
	"pkg/convert/places",
	"pkg/convert/prove",
	"pkg/convert/rehub",
	"pkg/convert/suggest",
	"pkg/crddiff",
	"pkg/crdschema",
	"pkg/drift",
	"pkg/drift/managed",
	"pkg/fieldpath",
	"pkg/generate",
	"pkg/operator",
	"pkg/operator/compile",
	"pkg/operator/decide",
	"pkg/operator/desired",
	"pkg/operator/generated",
	"pkg/operator/health",
	"pkg/operator/hints",
	"pkg/operator/marks",
	"pkg/operator/report",
	"pkg/redact",
	"pkg/render",
	"pkg/render/check",
	"pkg/render/functions",
	"pkg/render/holes",
	"pkg/render/parsing",
	"pkg/render/program",
	"pkg/render/reads",
	"pkg/render/skeleton",
	"pkg/render/values",
	"pkg/rules",
	"pkg/rules/cost",
	"pkg/rules/schema",
	"pkg/rules/translate",
	"pkg/scaffold",
	"pkg/simpleschema",
	"pkg/source",
	"pkg/spelling",
	"pkg/sqltext",
	"pkg/status",
	"pkg/yamltext",
}

// clients are the client libraries for API servers.
var clients = []string{"k8s.io/client-go", "sigs.k8s.io/controller-runtime"}

// informers are the libraries that only pkg/informers may use, so that watches are in one place.
var informers = []string{"k8s.io/client-go/informers", "k8s.io/client-go/tools/cache", "k8s.io/client-go/dynamic/dynamicinformer"}

// layer returns the number of a package's layer, counted from the top.
func layer(pkg string) (int, bool) {
	i := slices.IndexFunc(layers, func(packages []string) bool { return slices.Contains(packages, pkg) })
	return i, i >= 0
}

// forbidden returns why a file of the package pkg may not import a path, or "" if it may. Tests may import anything.
func forbidden(pkg, path string) string {
	own, ours := strings.CutPrefix(path, module+"/")
	switch {
	case ours && strings.HasPrefix(own, "hack/"):
		if folder := strings.Join(strings.SplitN(own, "/", 3)[:2], "/"); hasPrefix(pkg, []string{folder}) {
			return "" // packages of one command
		}
		return "nothing imports what is in hack, except what is in the same folder of it"
	case !strings.HasPrefix(pkg, "pkg/") && !strings.HasPrefix(pkg, "cmd/"):
		return "" // development only
	case ours && strings.HasPrefix(own, "internal/"):
		return "internal is for tests and for hack"
	case ours:
		return forbiddenArrow(pkg, own)
	case pkg != "pkg/informers" && hasPrefix(path, informers):
		return "only pkg/informers watches"
	case slices.Contains(pure, pkg) && hasPrefix(path, clients):
		return "this package does without an API server"
	}
	return ""
}

// forbiddenArrow is forbidden for two packages of the program.
func forbiddenArrow(from, to string) string {
	upper, known := layer(from)
	if !known {
		return "this package has no layer: add it to the list in internal/house"
	}
	lower, known := layer(to)
	switch {
	case !known:
		return "the imported package has no layer: add it to the list in internal/house"
	case lower <= upper:
		return "imports go down the layers only"
	case slices.Contains(never[from], to):
		return "this package never imports that one"
	}
	return ""
}

// hasPrefix reports whether the import path is one of the prefixes or below one.
func hasPrefix(path string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(prefix string) bool {
		return path == prefix || strings.HasPrefix(path, prefix+"/")
	})
}

func TestImports(t *testing.T) {
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		for _, spec := range s.file.Imports {
			path, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			if why := forbidden(s.dir, path); why != "" {
				t.Errorf("%s: imports %s: %s", s.at(spec.Pos()), path, why)
			}
		}
	}
}

func TestEveryPackageHasALayer(t *testing.T) {
	for _, s := range product(t) {
		if _, known := layer(s.dir); !known {
			t.Errorf("%s: the package has no layer: add it to the list in internal/house", s.path)
		}
	}
}

func TestForbidden(t *testing.T) {
	tests := []struct {
		pkg, path string
		forbidden bool
		reason    string
	}{
		{"pkg/operator/compile", module + "/pkg/rules", false, "a layer below"},
		{"pkg/rules", module + "/pkg/operator/compile", true, "a layer above"},
		{"pkg/rules", module + "/pkg/render", true, "the same layer"},
		{"pkg/apply", module + "/pkg/fieldpath", false, "the bottom is for all"},
		{"pkg/apply", module + "/pkg/drift", true, "the same layer"},
		{"pkg/operator/compile", module + "/pkg/apply", true, "deciding writes nothing"},
		{"pkg/engine", module + "/pkg/apply", false, "the engine writes"},
		{"pkg/engine", module + "/pkg/elsewhere", true, "a package without a layer"},
		{"pkg/engine", module + "/internal/testkit", true, "a test's package in the product"},
		{"hack/demo", module + "/internal/controlplane", false, "development may use internal"},
		{"internal/testkit", module + "/hack/demo", true, "nothing imports hack"},
		{"hack/bench/floor", module + "/hack/bench/work", false, "packages of one command of hack"},
		{"hack/demo", module + "/hack/bench/work", true, "another command of hack"},
		{"pkg/informers", "k8s.io/client-go/tools/cache", false, "the informers watch"},
		{"pkg/kinds", "k8s.io/client-go/tools/cache", true, "nobody else watches"},
		{"pkg/kinds", "k8s.io/client-go/rest", false, "kinds asks an API server"},
		{"pkg/drift", "k8s.io/client-go/rest", true, "a pure package"},
		{"pkg/drift", "k8s.io/apimachinery/pkg/types", false, "types are no client"},
		{"pkg/operator/compile", "sigs.k8s.io/controller-runtime/pkg/client", true, "a pure package"},
	}
	for _, test := range tests {
		if why := forbidden(test.pkg, test.path); (why != "") != test.forbidden {
			t.Errorf("%s: %s imports %s: got %q", test.reason, test.pkg, test.path, why)
		}
	}
}
