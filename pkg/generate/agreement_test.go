package generate_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/kinds/discovered"
	"github.com/corollary-dev/corollary/pkg/operator/compile"
)

// patience is how long a test waits for what has to come.
const patience = testkit.Patience

// doorCase is an object's spec, and the message of the first rule that it breaks; "" where it is valid.
type doorCase struct{ reason, spec, want string }

// doors are what the configs and definitions of testdata/doors are tried with.
var doors = map[string][]doorCase{
	"typed": {
		{"valid", `{image: registry.example.com/web}`, ""},
		{"all that there is", `{image: registry.example.com/web, tag: v1, replicas: 3, size: 5, ratio: 1.5, port: 80, memory: 1Gi, host: a.example.com, address: 10.1.2.3,
			version: 1.9.9, node-pool: a, namespace: a, since: "2026-01-01T00:00:00Z", day: "2026-03-01", timeout: 90s,
			labels: {zone: a}, zones: [a, b],
			times: ["2026-01-01T00:00:00Z"], weights: {a: 1, b: 5.5}, env: [{name: A, value: x}, {name: B, value: z}]}`, ""},
		{"a param is a limit", `{image: registry.example.com/web, replicas: 21}`, "spec.replicas: Invalid value: at most 20 replicas"},
		{"a message that is made", `{image: registry.example.com/web, replicas: 13}`, "Forbidden: not 13 replicas of registry.example.com/web"},
		{"a param within an expression", `{image: web}`, "spec.image: Required value: wrong registry"},
		{"a missing field is an error", `{}`, "error: no such key: image"},
		{"no message: the rule is told", `{image: registry.example.com/web, tag: latest}`,
			"Invalid value: failed rule: !has(self.spec.tag) || self.spec.tag != 'latest'"},
		{"null counts as absent", `{image: registry.example.com/web, tag: null}`, ""},
		{"an escaped name", `{image: registry.example.com/web, node-pool: a, namespace: b}`, "spec.node-pool: Invalid value: pool"},
		{"an escaped name that is missing", `{image: registry.example.com/web, node-pool: a}`, "other words"},
		{"a macro's variable called self", `{image: registry.example.com/web, env: [{name: A, value: x}, {name: B}]}`,
			"spec.env: Invalid value: bad: B"},
		{"a message that gives an error", `{image: registry.example.com/web, env: [{name: A, value: ""}]}`,
			"spec.env: Invalid value: empty value"},
		{"a number or text", `{image: registry.example.com/web, port: ssh}`, "spec.port: Invalid value: port"},
		{"a duration", `{image: registry.example.com/web, timeout: 30s}`, "Invalid value: too short: 30s"},
		{"a time", `{image: registry.example.com/web, since: "2040-01-01T00:00:00Z"}`, "Invalid value: too late: 2040"},
		{"a time with an offset", `{image: registry.example.com/web, since: "2030-01-01T01:00:00+02:00"}`, ""},
		{"a day", `{image: registry.example.com/web, day: "2026-12-24"}`, "Invalid value: not in December"},
		{"times in a list, and a variable called object",
			`{image: registry.example.com/web, times: ["2026-01-01T00:00:00Z", "2040-01-01T00:00:00Z"]}`, "Invalid value: one is too late"},
		{"whole numbers where fractions may be", `{image: registry.example.com/web, weights: {a: 3, b: 2}}`, "Invalid value: all too heavy"},
		{"a key of a map", `{image: registry.example.com/web, labels: {zone: a, app: other}}`, "spec.labels[app]: Invalid value: app"},
		{"a whole number for a fraction", `{image: registry.example.com/web, ratio: 1}`, ""},
		{"a fraction and a param", `{image: registry.example.com/web, ratio: 0.25}`, "spec.ratio: Invalid value: too small a ratio"},
		{"a division by zero", `{image: registry.example.com/web, replicas: 0}`, "error: division by zero"},
		{"a key that is missing", `{image: registry.example.com/web, labels: {}}`, "error: no such key: zone"},
		{"a quantity", `{image: registry.example.com/web, memory: 1025Mi}`, "Invalid value: at most 1Gi"},
		{"what is no quantity", `{image: registry.example.com/web, memory: lots}`, "error: quantities must match"},
		{"a format", `{image: registry.example.com/web, host: "no host"}`, "Invalid value: no host: no host"},
		{"two variables", `{image: registry.example.com/web, labels: {zone: zone}}`, "Invalid value: a label is its own value"},
		{"words of another language", `{image: registry.example.com/web, enabled: true}`, "Invalid value: Begründung fehlt ☃"},
		{"a list in a param", `{image: registry.example.com/web, zones: [a, d]}`, "Invalid value: unknown zone"},
		{"a default counts", `{image: registry.example.com/web, size: 4}`, "Invalid value: it is even"},
		{"a message from the object", `{image: registry.example.com/web, size: 4, reason: " because "}`, "Invalid value: because"},
		{"a message of two lines", `{image: registry.example.com/web, size: 4, reason: "be\ncause"}`, "Invalid value: it is even"},
		{"an address", `{image: registry.example.com/web, address: 192.168.0.1}`, "Invalid value: outside"},
		{"a version", `{image: registry.example.com/web, version: 2.0.0}`, "Invalid value: too new"},
		{"macros after one another", `{image: registry.example.com/web, env: [{name: B, value: x}]}`, "Invalid value: A is missing"},
		{"a fraction that may be missing, by its key", `{image: registry.example.com/web, weights: {a: 5, b: 1}}`,
			"Invalid value: a is too heavy"},
		{"a key that may be missing, converted", `{image: registry.example.com/web, labels: {zone: nowhere}}`, "Invalid value: no zone"},
		{"an escaped name that may be missing, converted", `{image: registry.example.com/web, node-pool: none, namespace: none}`,
			"Invalid value: no pool"},
		{"times in a list, with two variables", `{image: registry.example.com/web, times: ["1999-01-01T00:00:00Z"]}`, "Invalid value: too early"},
		{"the fields of a param", `{image: registry.example.com/web, size: -3}`, "Invalid value: too small"},
	},
	"untyped": {
		{"valid", `{replicas: 3}`, ""},
		{"too many", `{replicas: 21}`, "spec.replicas: Invalid value: at most 20 replicas"},
		{"a fraction compares with a whole number", `{replicas: 20.5}`, "spec.replicas: Invalid value: at most 20 replicas"},
		{"and fits", `{replicas: 19.5}`, ""},
		{"text compares with no number", `{replicas: "3"}`, "error: no such overload"},
		{"null neither", `{replicas: null}`, "error: no such overload"},
		{"a missing field is an error", `{}`, "error: no such key: replicas"},
		{"a missing spec too", ``, "error: no such key: spec"},
		{"a fraction", `{replicas: 3, ratio: 0.75}`, "Invalid value: too much"},
		{"a whole number times a fraction is an error", `{replicas: 3, ratio: 1}`, "error: no such overload"},
		{"a bool", `{replicas: 3, enabled: false}`, "Invalid value: switch it on"},
		{"what is no bool is an error", `{replicas: 3, enabled: "yes"}`, "other words"},
		{"a message from the object", `{replicas: 3, text: b}`, "Invalid value: b"},
		{"a message that is no text", `{replicas: 3, text: 5}`, "Invalid value: not a"},
		{"a blank message", `{replicas: 3, text: " "}`, "Invalid value: not a"},
		{"an escaped name", `{replicas: 3, foo-bar: 2}`, "Invalid value: foo-bar"},
		{"that looks like an escaped one", `{replicas: 3, foo__dash__bar: 2}`, "Invalid value: foo-bar"},
		{"both: the very name wins", `{replicas: 3, a-b: 1, a__dash__b: 2}`, ""},
		{"or not", `{replicas: 3, a-b: 2, a__dash__b: 1}`, "Invalid value: a-b"},
		{"optional all the way", `{replicas: 3, list: [{name: "y"}]}`, "Invalid value: y"},
		{"a key that is no identifier", `{replicas: 3, größe: 3}`, "Invalid value: zu groß"},
		{"text that looks like self", `{replicas: 3, list: [{name: self.spec}]}`, "Invalid value: self.spec"},
		{"two variables and a filter", `{replicas: 3, nested: {a: 1, b: 2}}`, "Invalid value: more than one"},
		{"null is a value without a schema", `{replicas: 3, nothing: null}`, "Invalid value: null counts as a value"},
		{"a quantity", `{replicas: 3, cpu: 2500m}`, "Invalid value: at most 2"},
		{"whole numbers beyond what a float holds", `{replicas: 3, big: 9007199254740993}`, "Invalid value: too big"},
		{"to the last digit", `{replicas: 3, big: 9007199254740992}`, ""},
	},
}

// door is one set of testdata/doors.
type door struct {
	name, group, namespace, beside string
	files                          []*load.File
	// offline is compiled as the command line does it, live as the operator does.
	offline, live *compile.Pipeline
}

func openDoor(t *testing.T, set string) *door {
	t.Helper()
	d := &door{name: testkit.Unique(t), namespace: testkit.Namespace(t), beside: testkit.Namespace(t)}
	d.group = d.name + ".example.com"
	crd := d.read(t, set+".crd.yaml")
	testkit.InstallCRDs(t, crd)
	d.files = loaded(t, d.read(t, set+".yaml"))
	path := filepath.Join(t.TempDir(), "crd.yaml")
	must.Do(t, os.WriteFile(path, []byte(crd), 0o600))
	offline := must.Get(kinds.Offline(path)).In(t)
	cluster := must.Get(discovered.New(testkit.Config(t))).In(t)
	d.offline, d.live = compiled(t, d.files[0], offline), compiled(t, d.files[0], cluster)
	return d
}

func compiled(t *testing.T, f *load.File, source kinds.Source) *compile.Pipeline {
	t.Helper()
	p, problems, err := compile.One(f, compile.Options{Kinds: source})
	if err != nil || len(problems) > 0 {
		t.Fatal(err, problems)
	}
	return p
}

func (d *door) read(t *testing.T, name string) string {
	t.Helper()
	text := must.Get(os.ReadFile(filepath.Join("testdata/doors", name))).In(t)
	return strings.NewReplacer("GROUP", d.group, "NAME", d.name, "NS", d.namespace).Replace(string(text))
}

// loaded loads a config.
func loaded(t *testing.T, text string) []*load.File {
	t.Helper()
	files, problems := load.Operators(load.Options{Files: []string{"-"}, Stdin: strings.NewReader(text)})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return files
}

func (d *door) object(name, spec string) string {
	if spec != "" {
		spec = "\nspec: " + strings.ReplaceAll(spec, "\t", "  ")
	}
	return fmt.Sprintf("apiVersion: %s/v1\nkind: Thing\nmetadata: {name: %s}%s", d.group, name, spec)
}
