package engine_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/internal/testkit"
)

// withInputs is widgetConfig with a ConfigMap as input, whose name the Widget gives in spec.name, and a template that
// copies it.
func withInputs(ns, name string, changes ...string) string {
	text := fill(widgetConfig, ns, name)
	text = strings.Replace(text, "downstreams:\n", `parameters: {greeting: hello}
inputs:
  - name: settings
    apiVersion: v1
    kind: ConfigMap
    objectName: self.spec.?name.orValue("")
    missing: Wait
downstreams:
`, 1)
	text = strings.Replace(text, "name: {{ .spec.name | default .metadata.name }}", "name: {{ .metadata.name }}-copy", 1)
	text = strings.Replace(text, "data: {{ .spec.data }}", `data:
        greeting: {{ param "greeting" }}
        color: {{ (input "settings").data.color }}`, 1)
	return strings.NewReplacer(changes...).Replace(text)
}

// readings are the ways in which a template reads a field of an input, as changes of withInputs.
var readings = map[string][]string{
	"directly": nil,
	"through a variable": {
		"downstreams:\n", "variables:\n  - {name: color, expression: inputs.settings.data.color}\ndownstreams:\n",
		`(input "settings").data.color`, `variable "color"`,
	},
}

func applySettings(t testing.TB, ns, name, color string) {
	t.Helper()
	testkit.Apply(t, ns, fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\ndata: {color: %q}\n", name, color))
}

func applyReader(t testing.TB, ns, name, settings string) {
	t.Helper()
	testkit.Apply(t, ns, fmt.Sprintf("apiVersion: test.example.com/v1\nkind: Widget\nmetadata: {name: %s}\nspec: {name: %q}\n", name, settings))
}

// eventuallyCondition waits until the reason and message of a Widget's Ready are what they should be.
func eventuallyCondition(t *testing.T, ns, name, status, reason, text string) {
	t.Helper()
	waitThat(t, widgets, ns, name, func(u *obj) bool {
		s, r, m := condition(u, "Ready")
		return s == status && (reason == "" || r == reason) && strings.Contains(m, text)
	})
}

// A missing input holds its readers back and nothing else; once it is there they go on, and they follow its changes.
func TestInputWaits(t *testing.T) {
	for reason, changes := range readings {
		t.Run(reason, spaced(func(t *testing.T, ns, name string) {
			applyReader(t, ns, "a", "blue")
			start(t, testkit.Config(t), withInputs(ns, name, changes...))
			eventuallyCondition(t, ns, "a", "False", "Waiting", "input settings: ConfigMap "+ns+"/blue does not exist")

			applySettings(t, ns, "blue", "navy")
			waitData(t, ns, "a-copy", "color", "navy")
			applySettings(t, ns, "blue", "azure")
			waitData(t, ns, "a-copy", "color", "azure")

			testkit.Delete(t, configMaps, ns, "blue")
			eventuallyCondition(t, ns, "a", "False", "Waiting", "does not exist")
			mustExist(t, configMaps, ns, "a-copy", "a missing input took away what existed")
			applyReader(t, ns, "a", "red")
			applySettings(t, ns, "red", "crimson")
			waitData(t, ns, "a-copy", "color", "crimson")
			data, _, _ := unstructured.NestedString(testkit.Get(t, configMaps, ns, "a-copy").Object, "data", "greeting")
			must.Same(t, "hello", data, "the parameter")
		}))
	}
}

// Whoever writes the upstream chooses a name and never a namespace.
func TestInputStaysInItsNamespace(t *testing.T) {
	inSpaces(t, func(t *testing.T, ns, other, name string) {
		applySettings(t, other, "secret", "stolen")
		for reader, asks := range map[string]string{"slash": other + "/secret", "dots": "../" + other + "/secret", "plain": "secret"} {
			applyReader(t, ns, reader, asks)
		}
		start(t, testkit.Config(t), withInputs(ns, name))
		eventuallyCondition(t, ns, "slash", "False", "RenderFailed", "which is not a valid name")
		eventuallyCondition(t, ns, "dots", "False", "RenderFailed", "which is not a valid name")
		eventuallyCondition(t, ns, "plain", "False", "Waiting", "does not exist")
		if found := testkit.List(t, configMaps, ns, selector(name)); len(found) != 0 {
			t.Errorf("%d objects were made of another namespace's input", len(found))
		}
	})
}

// What nobody reads of an input wakes nobody.
func TestInputChangeThatNobodyReads(t *testing.T) {
	for reason, changes := range readings {
		t.Run(reason, spaced(func(t *testing.T, ns, name string) {
			applySettings(t, ns, "blue", "navy")
			applyReader(t, ns, "a", "blue")
			start(t, testkit.Config(t), withInputs(ns, name, changes...))
			waitData(t, ns, "a-copy", "color", "navy")
			eventuallyCondition(t, ns, "a", "True", "", "")
			looks := metric(t, "corollary_reconcile_seconds", name)
			for i := range 10 {
				testkit.Patch(t, configMaps, ns, "blue", "somebody", fmt.Sprintf(`{"metadata":{"labels":{"x":"y%d"}}}`, i))
			}
			applySettings(t, ns, "blue", "azure") // the next news of the same object: what came before has been heard by then
			waitData(t, ns, "a-copy", "color", "azure")
			if renders := metric(t, "corollary_renders_total", name); renders != 2 {
				t.Errorf("rendered %v times, not once for each color", renders)
			}
			if now := metric(t, "corollary_reconcile_seconds", name) - looks; now > 5 {
				t.Errorf("%v looks at a Widget that had one piece of news", now)
			}
		}))
	}
}

// gate holds applies of ConfigMaps back while it is shut, and lets each take a moment: what takes no time at all has a
// turn whenever others took some.
type gate struct{ opened atomic.Pointer[chan struct{}] }

// shut shuts it until open is called.
func (g *gate) shut() (open func()) {
	opened := make(chan struct{})
	g.opened.Store(&opened)
	return sync.OnceFunc(func() { close(opened) })
}

// wrap returns a copy of a client configuration whose requests pass it.
func (g *gate) wrap(cfg *rest.Config) *rest.Config {
	return intercepted(cfg, func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		if r.Method == http.MethodPatch && strings.Contains(r.URL.Path, "/configmaps/") {
			if opened := g.opened.Load(); opened != nil {
				<-*opened
			}
			<-time.After(time.Millisecond)
		}
		return next.RoundTrip(r)
	})
}

// Many readers of one input cost one watch for it, and its change one write each: behind what someone has just asked
// for.
func TestManyReadersOfOneInput(t *testing.T) {
	inSpaces(t, func(t *testing.T, ns, platform, name string) {
		counter := testkit.NewCounter()
		applySettings(t, platform, "shared", "navy")
		eachOf(func(reader string, _ int) { applyReader(t, ns, reader, "ignored") })
		conf := withInputs(ns, name, `objectName: self.spec.?name.orValue("")`, "fixedName: shared\n    namespace: "+platform)
		gate := &gate{}
		start(t, counter.Wrap(gate.wrap(testkit.Config(t))), conf).ready()
		follow := func(color string) {
			eachOf(func(reader string, _ int) { waitData(t, ns, reader+"-copy", "color", color) })
			quiet(t, counter)
		}
		follow("navy")
		watched := 0
		for _, r := range counter.Requests() {
			if r.Verb == "WATCH" && r.Namespace == platform {
				watched++
				if !strings.Contains(r.Query, "metadata.name%3Dshared") {
					t.Errorf("more is watched than the one input: %s", r.Query)
				}
			}
		}
		must.Same(t, 1, watched, "watches for one input")

		counter.Reset()
		open := gate.shut()
		defer open()
		applySettings(t, platform, "shared", "azure")
		waiting := func() float64 { return metric(t, "corollary_queue", name) }
		synctest.Wait() // no time passes: of what the held ones take, a part is for those that wait for the longest time
		if held, waits := counter.Total(), waiting(); held != workers || waits < many-workers {
			t.Errorf("held are %v, %v readers wait", counter.Snapshot(), waits)
		}
		applyReader(t, ns, "late", "ignored")
		synctest.Wait() // its watch has shown it
		open()
		follow("azure")
		waitData(t, ns, "late-copy", "color", "azure")
		at := slices.IndexFunc(counter.Requests(), func(r testkit.Request) bool { return r.Name == "late-copy" })
		t.Logf("%d requests for %d readers; a new upstream had its turn at number %d", counter.Total(), many, at)
		if at > 10*workers {
			t.Errorf("a new upstream waited behind the burst: its turn came at request %d of %d", at, counter.Total())
		}
		if per := float64(counter.Total()-2) / many; per > 2.05 {
			t.Errorf("%.3f requests for each reader of a changed input: %v", per, counter.Snapshot())
		}
	})
}

// A downstream that cannot be rendered yet does not keep the upstream from getting the finalizer that another one
// needs.
func TestFinalizerWithAWaitingDownstream(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ reason, waits string }{
		{"an input is missing", `{{ (input "settings").data.color }}`},
		{"the template fails", `{{ .spec.data.missing | upper }}`},
	} {
		t.Run(row.reason, spaced(func(t *testing.T, ns, name string) {
			conf := withInputs(ns, name, "owner: {", "owner: {reference: false, ", `color: {{ (input "settings").data.color }}`, "color: "+row.waits)
			conf = strings.Replace(conf, "    # downstream\n", "  - name: other\n    apiVersion: v1\n    kind: ConfigMap\n    template: |\n"+
				"      metadata: {name: \"{{ .metadata.name }}-other\"}\n      data: {key: value}\n", 1)
			r := start(t, testkit.Config(t), conf).ready()
			applyReader(t, ns, "a", "blue")
			waitData(t, ns, "a-other", "key", "value")
			if f := testkit.Get(t, widgets, ns, "a").GetFinalizers(); len(f) != 1 {
				t.Errorf("finalizers are %v beside an object that nothing else cleans up", f)
			}
			deleteAndWait(t, widgets, ns, "a")
			waitGone(t, configMaps, ns, "a-other")
			r.halt()
		}))
	}
}

// Rows of a database are inputs like objects: one of them, or a list. A query that fails changes nothing.
func TestInputSQL(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		db := newDatabase(t)
		db.exec("CREATE TABLE users (id INTEGER PRIMARY KEY, team TEXT, name TEXT)")
		db.exec("CREATE TABLE prices (team TEXT PRIMARY KEY, price INTEGER)")
		db.exec("INSERT INTO users VALUES (2, 'a', 'ann'), (1, 'b', 'bob'), (10, 'a', 'al')")
		db.exec("INSERT INTO prices VALUES ('a', 5)")
		conf := strings.NewReplacer("downstreams:\n  - name", `inputs:
  - name: price
    sql: {sqlite: {path: DB}, query: "SELECT team, price FROM prices", key: team, changes: {poll: 1s}}
    objectName: self.metadata.name
  - name: users
    sql: {sqlite: {path: DB}, query: "SELECT id, team, name FROM users", key: id, changes: {poll: 1s}}
    list: {matching: object.row.team == self.metadata.name}
downstreams:
  - name`, "data: {{ .spec.data }}", `data:
        price: "{{ (input "price").row.price }}"
        users: "{{ range input "users" }}{{ .row.name }} {{ end }}"`).Replace(fill(widgetConfig, ns, name))
		conf = strings.ReplaceAll(conf, "DB", db.path)
		_, counter := startCounted(t, conf)
		testkit.Apply(t, ns, widget("a", "{}"))
		testkit.Apply(t, ns, widget("b", "{}"))
		waitData(t, ns, "a", "price", "5")
		waitData(t, ns, "a", "users", "ann al ")
		waitCondition(t, widgets, ns, "a", "Ready", "True")
		waitCondition(t, widgets, ns, "b", "Ready", "False") // there is no such row
		db.exec("INSERT INTO prices VALUES ('b', 7)")
		waitData(t, ns, "b", "price", "7")
		waitData(t, ns, "b", "users", "bob ")
		waitCondition(t, widgets, ns, "b", "Ready", "True")
		writes := func() int {
			return counter.Mutating(func(r testkit.Request) bool { return r.Resource == "configmaps" })
		}
		made := writes()
		db.exec("UPDATE users SET team = 'b' WHERE id = 10")
		waitData(t, ns, "a", "users", "ann ")
		waitData(t, ns, "b", "users", "bob al ")
		must.Same(t, 2, writes()-made, "a row that moves from one list to another makes", "writes")
		db.exec("ALTER TABLE users RENAME TO people")
		waitState(t, name, "SourceFailed")
		isRepaired(t, ns, "a", "users", "ann ")
		db.exec("UPDATE prices SET price = 6 WHERE team = 'a'")
		waitData(t, ns, "a", "price", "6")
		waitData(t, ns, "a", "users", "ann ")
		db.exec("ALTER TABLE people RENAME TO users")
		waitState(t, name, "Running")
		db.exec("DELETE FROM users")
		waitData(t, ns, "a", "users", "")
	})
}

// Without its first result, an operator does nothing: what it reads is not known to be empty.
func TestInputSQLThatCannotBeRead(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		db := newDatabase(t)
		conf := strings.NewReplacer("downstreams:\n  - name", `inputs:
  - {name: users, sql: {sqlite: {path: `+db.path+`}, query: SELECT id FROM users, key: id, changes: {poll: 1s}}, list: {}}
downstreams:
  - name`, "data: {{ .spec.data }}", `data: {users: "{{ len (input "users") }}"}`).Replace(fill(widgetConfig, ns, name))
		r := start(t, testkit.Config(t), conf)
		testkit.Apply(t, ns, widget("a", "{}"))
		r.waitUnready("SourceFailed", "executing inputs[0].sql.query: ")
		mustBeAbsent(t, configMaps, ns, "a", "an object was made of a list that is not known")
		db.exec("CREATE TABLE users (id INTEGER PRIMARY KEY)")
		r.ready()
		waitData(t, ns, "a", "users", "0")
	})
}

// Rows that are upstreams read lists of rows, too, although neither is in a namespace.
func TestRowsReadRows(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		db := newDatabase(t)
		db.exec("CREATE TABLE users (id INTEGER PRIMARY KEY, app TEXT, name TEXT)")
		db.exec("INSERT INTO users VALUES (1, 'app-1', 'ann'), (2, 'app-2', 'bob')")
		db.add(1, 2)
		conf := strings.NewReplacer("downstreams:\n  - name", `inputs:
  - name: users
    sql: {sqlite: {path: DB}, query: "SELECT id, app, name FROM users", key: id, changes: {poll: 1s}}
    list: {matching: object.row.app == self.row.name}
  - name: size
    sql: {sqlite: {path: DB}, query: "SELECT name, length(data) AS size FROM apps", key: name, changes: {poll: 1s}}
    objectName: self.row.name
downstreams:
  - name`, "data: {{ .row.data }}", `data:
        users: "{{ range input "users" }}{{ .row.name }} {{ end }}"
        size: "{{ (input "size").row.size }}"`).Replace(rowsConfig)
		start(t, testkit.Config(t), strings.ReplaceAll(fill(conf, ns, name), "DB", db.path)).ready()
		waitData(t, ns, "app-1", "users", "ann ")
		waitData(t, ns, "app-2", "users", "bob ")
		waitData(t, ns, "app-1", "size", "14")
		db.exec("UPDATE users SET app = 'app-1'")
		waitData(t, ns, "app-1", "users", "ann bob ")
		waitData(t, ns, "app-2", "users", "")
	})
}

// secretConfig has a downstream for each way to complain about a Secret that is an input.
func secretConfig(ns, name string) string {
	conf := withInputs(ns, name, "kind: ConfigMap\n    objectName", "kind: Secret\n    objectName", "events: None", "events: All")
	var list strings.Builder
	sinks := testkit.SecretSinks()
	for _, sink := range slices.Sorted(maps.Keys(sinks)) {
		fmt.Fprintf(&list, "  - name: %s\n    %s\n", sink, sinks[sink])
	}
	at, end := strings.Index(conf, "  - name: config"), strings.Index(conf, "conventions:\n")
	return conf[:at] + list.String() + conf[end:]
}

// applySecrets makes each Secret and a Widget that reads it.
func applySecrets(t *testing.T, ns string) map[string][]byte {
	t.Helper()
	secrets := testkit.Secrets()
	for name, value := range secrets {
		testkit.Apply(t, ns, "{apiVersion: v1, kind: Secret, metadata: {name: "+name+"}, data: {color: '"+base64.StdEncoding.EncodeToString(value)+"'}}")
		applyReader(t, ns, name, name)
	}
	return secrets
}

// No part of a Secret that is an input is in a condition, an event, the log, a metric or the result of a survey, in any
// encoding, whatever error templates, expressions, the API server and admission report.
func TestSecretInputIsNotReported(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		testkit.Policy(t, ns, "Validating", "CREATE, UPDATE", "", "configmaps", // quotes what the objects hold
			`  validations: [{expression: "!('denied' in object.metadata.?annotations.orValue({}))", messageExpression: "'no ' + object.data.x"}]`)
		testkit.Eventually(t, patience, func() (bool, string) {
			_, err := testkit.TryApply(t, ns, "{apiVersion: v1, kind: ConfigMap, metadata: {name: probe, annotations: {denied: x}}, data: {x: y}}")
			return err != nil, "the policy does not refuse anything yet"
		})
		secrets := applySecrets(t, ns)
		conf := secretConfig(ns, name)
		log := startLogged(t, conf)
		for upstream, value := range secrets {
			eventuallyCondition(t, ns, upstream, "False", "", "")
			waitEvent(t, ns, upstream, "RenderFailed", "")
			notLeaked(t, upstream, value, map[string]any{"the upstream": testkit.Get(t, widgets, ns, upstream).Object})
		}
		all := map[string]any{"events": testkit.List(t, events, ns, ""), "the log": log(), "metrics": gathered(t)}
		for upstream, value := range secrets {
			notLeaked(t, upstream, value, all)
		}
		for sink := range testkit.SecretSinks() { // each of them came to its complaint
			failed := metric(t, "corollary_objects", name, "downstream", sink, "state", "RenderFailed") + metric(t, "corollary_failures_total", name, "downstream", sink)
			if rules := sink == "ready" || sink == "live" || sink == "failed"; !rules && failed == 0 {
				t.Errorf("nothing complained about downstream %s", sink)
			}
		}
	})
}

// A rule of the config that reads a Secret does not quote it either.
func TestSecretInRuleIsNotReported(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		secrets := applySecrets(t, ns)
		conf := withInputs(ns, name, "kind: ConfigMap\n    objectName", "kind: Secret\n    objectName", "events: None", "events: All")
		log := startLogged(t, strings.Replace(conf, "downstreams:\n", "validate: [{rule: int(inputs.settings.data.color) > 3, message: too small}]\ndownstreams:\n", 1))
		for upstream, value := range secrets {
			eventuallyCondition(t, ns, upstream, "False", "Invalid", "type conversion error evaluating rule")
			waitEvent(t, ns, upstream, "Invalid", "")
			notLeaked(t, upstream, value, map[string]any{"the upstream": testkit.Get(t, widgets, ns, upstream).Object, "events": testkit.List(t, events, ns, ""), "the log": log()})
		}
	})
}

func notLeaked(t *testing.T, upstream string, value []byte, texts map[string]any) {
	t.Helper()
	noneLeaked(t, upstream, value, texts, testkit.Leaked)
}

func noneLeaked(t *testing.T, upstream string, value []byte, texts map[string]any, search func(string, []byte) []string) {
	t.Helper()
	for what, text := range texts {
		written := must.Get(json.Marshal(text)).In(t)
		if leaked := search(string(written), value); len(leaked) > 0 {
			at := strings.Index(string(written), leaked[0])
			t.Errorf("%s tells %d pieces of %s, such as %q: …%s", what, len(leaked), upstream, leaked[0], written[max(0, at-300):min(len(written), at+100)])
		}
	}
}

// gathered are all metrics as text.
func gathered(t *testing.T) string {
	families := must.Get(metrics.Registry.Gather()).In(t)
	return fmt.Sprint(families)
}
