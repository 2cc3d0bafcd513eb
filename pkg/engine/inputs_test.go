package engine_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

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
	testkit.Eventually(t, patience, func() (bool, string) {
		s, r, m := condition(testkit.Get(t, widgets, ns, name), "Ready")
		return s == status && (reason == "" || r == reason) && strings.Contains(m, text), "Ready is " + s + ", " + r + ": " + m
	})
}

// A missing input holds its readers back and nothing else; once it is there they go on, and they follow its changes.
func TestInputWaits(t *testing.T) {
	for reason, changes := range readings {
		t.Run(reason, bubbled(func(t *testing.T) { inputWaits(t, changes) }))
	}
}

func inputWaits(t *testing.T, changes []string) {
	ns, name := testkit.Namespace(t), testkit.Unique(t)
	applyReader(t, ns, "a", "blue")
	start(t, testkit.Config(t), withInputs(ns, name, changes...))
	eventuallyCondition(t, ns, "a", "False", "Waiting", "input settings: ConfigMap "+ns+"/blue does not exist")

	applySettings(t, ns, "blue", "navy")
	waitData(t, ns, "a-copy", "color", "navy")
	applySettings(t, ns, "blue", "azure")
	waitData(t, ns, "a-copy", "color", "azure")

	testkit.Delete(t, configMaps, ns, "blue")
	eventuallyCondition(t, ns, "a", "False", "Waiting", "does not exist")
	mustExist(t, configMaps, ns, "a-copy", "a missing input took away what stood")
	applyReader(t, ns, "a", "red")
	applySettings(t, ns, "red", "crimson")
	waitData(t, ns, "a-copy", "color", "crimson")
	data, _, _ := unstructured.NestedString(testkit.Get(t, configMaps, ns, "a-copy").Object, "data", "greeting")
	if data != "hello" {
		t.Errorf("the parameter is %q", data)
	}
}

// An input that may be missing is null.
func TestInputMayBeMissing(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		applyReader(t, ns, "a", "")
		start(t, testkit.Config(t), withInputs(ns, name, "missing: Wait", "missing: Allow",
			`color: {{ (input "settings").data.color }}`, `color: {{ ((input "settings").data).color | default "none" }}`))
		waitData(t, ns, "a-copy", "color", "none")
		applyReader(t, ns, "a", "blue")
		applySettings(t, ns, "blue", "navy")
		waitData(t, ns, "a-copy", "color", "navy")
	})
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

// An input in a namespace that the config fixes is one object for all, and one watch.
func TestInputOfFixedNamespace(t *testing.T) {
	inSpaces(t, func(t *testing.T, ns, platform, name string) {
		testkit.Apply(t, platform, "apiVersion: v1\nkind: Secret\nmetadata: {name: pull}\nstringData: {color: green}\n")
		applyReader(t, ns, "a", "ignored")
		start(t, testkit.Config(t), withInputs(ns, name, "kind: ConfigMap\n    objectName: self.spec.?name.orValue(\"\")",
			"kind: Secret\n    fixedName: pull\n    namespace: "+platform, `.data.color`, `.data.color | b64dec`))
		waitData(t, ns, "a-copy", "color", "green")
		testkit.Apply(t, platform, "apiVersion: v1\nkind: Secret\nmetadata: {name: pull}\nstringData: {color: red}\n")
		waitData(t, ns, "a-copy", "color", "red")
	})
}

// What nobody reads of an input wakes nobody.
func TestInputChangeThatNobodyReads(t *testing.T) {
	for reason, changes := range readings {
		t.Run(reason, bubbled(func(t *testing.T) { inputChangeThatNobodyReads(t, changes) }))
	}
}

func inputChangeThatNobodyReads(t *testing.T, changes []string) {
	ns, name := testkit.Namespace(t), testkit.Unique(t)
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
}

// gate holds applies of ConfigMaps back while it is shut.
type gate struct{ opened atomic.Pointer[chan struct{}] }

// shut shuts it until open is called.
func (g *gate) shut() (open func()) {
	opened := make(chan struct{})
	g.opened.Store(&opened)
	return sync.OnceFunc(func() { close(opened) })
}

// wrap returns a copy of a client configuration whose requests pass it.
func (g *gate) wrap(cfg *rest.Config) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodPatch && strings.Contains(r.URL.Path, "/configmaps/") {
				if opened := g.opened.Load(); opened != nil {
					<-*opened
				}
			}
			return next.RoundTrip(r)
		})
	})
	return cfg
}

// Many readers of one input cost one watch for it, and its change one write each: behind what somebody has just asked for.
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
		if watched != 1 {
			t.Errorf("%d watches for one input", watched)
		}

		counter.Reset()
		open := gate.shut()
		defer open()
		applySettings(t, platform, "shared", "azure")
		waiting := func() float64 { return metric(t, "corollary_queue", name) }
		testkit.Eventually(t, patience, func() (bool, string) {
			return counter.Total() == workers && waiting() >= many-workers, fmt.Sprintf("held are %v, %v readers wait", counter.Snapshot(), waiting())
		})
		before := waiting() // one that is held may be queued again, if its watch is late
		applyReader(t, ns, "late", "ignored")
		testkit.Eventually(t, patience, func() (bool, string) { return waiting() > before, "the new upstream is not heard of" })
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
