package engine_test

import (
	_ "embed"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/engine"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
)

//go:embed testdata/strict.yaml
var strictCRD string

// strictKinds installs the kinds of strict.yaml into a group: Keyed, Atomic, whose conditions are replaced as a whole,
// Needy, whose status requires a field, and Terse, whose conditions take short messages only.
func strictKinds(t *testing.T, group string) {
	t.Helper()
	const keyed = "x-kubernetes-list-type: map\n                  x-kubernetes-list-map-keys: [type]"
	for _, kind := range []struct{ name, list, needs, limit string }{
		{"Keyed", keyed, "", "32768"}, {"Atomic", "", "", "32768"}, {"Needy", keyed, "required: [phase]", "32768"}, {"Terse", keyed, "", "40"},
	} {
		singular := strings.ToLower(kind.name)
		testkit.InstallCRDs(t, strings.NewReplacer("GROUP", group, "KIND", kind.name, "PLURAL", singular+"s", "SINGULAR", singular,
			"LIST", kind.list, "NEEDS", kind.needs, "LIMIT", kind.limit).Replace(strictCRD))
	}
}

type refusedRow struct {
	name, reason string
	kind         string // Keyed where it is empty
	// fields are those of the status. The values are those of spec.values with the last of their names, that of blob
	// twice.
	fields string
	// bad are values some of which are refused, good others that are not.
	bad, good string
	// says are fields and the causes that the condition names for them; these are left out. All others are written.
	says string
	// stays: what is refused stays as it was, since the kind requires it. It needs good values first.
	stays bool
}

// paths are the paths in status.fields, each with its key in spec.values.
func (r refusedRow) paths() (list [][2]string) {
	for _, field := range strings.Fields(r.fields) {
		list = append(list, [2]string{".status." + field, field[strings.LastIndex(field, ".")+1:]})
	}
	return list
}

// causes are those of says by path.
func (r refusedRow) causes() map[string]string {
	causes := map[string]string{}
	for part := range strings.SplitSeq(r.says, ", ") {
		if field, cause, ok := strings.Cut(part, " "); ok {
			causes[".status."+field] = cause
		}
	}
	return causes
}

func (r refusedRow) conf(ns, name, group string) string {
	var fields strings.Builder
	for _, f := range r.paths() {
		value := "self.spec.values." + f[1]
		if f[1] == "blob" {
			value += " + " + value
		}
		fmt.Fprintf(&fields, "    - {path: %s, value: %q}\n", f[0], value)
	}
	conf := strings.NewReplacer("{apiVersion: test.example.com/v1, kind: Widget,", "{apiVersion: "+group+"/v1, kind: "+r.kind+",",
		"data: {{ .spec.data }}", "data: {key: {{ .spec.data.key }}}",
		"conventions:\n", "conventions:\n  reconcile: {annotation: NAME.example.com/reconcile}\n",
		"  downstreams: .status.downstreams\n", "  downstreams: .status.downstreams\n  fields:\n"+fields.String()).Replace(widgetConfig)
	return fill(conf, ns, name) + "validate: [{rule: self.spec.replicas <= 20, message: too many}]\n"
}

// TestRefusedFields: a value of status.fields that the API server refuses keeps nothing else out of the status,
// whatever is wrong with it, and costs nothing once it is known.
func TestRefusedFields(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 800_000)
	for _, row := range []refusedRow{
		{name: "enum", reason: "not one of a list", fields: "phase", bad: `{phase: Worst}`, good: `{phase: Good}`, says: "phase FieldValueNotSupported"},
		{name: "maxLength", reason: "too long a text", fields: "text", bad: `{text: hidden-and-too-long}`, good: `{text: short}`, says: "text FieldValueTooLong"},
		{name: "pattern", reason: "a text of another form", fields: "code", bad: `{code: A1}`, good: `{code: abc}`, says: "code FieldValueInvalid"},
		{name: "minimum", reason: "too small a number", fields: "size", bad: `{size: 0}`, good: `{size: 1}`, says: "size FieldValueInvalid"},
		{name: "maxItems", reason: "too long a list", fields: "list", bad: `{list: [a, b, c]}`, good: `{list: [a, b]}`, says: "list FieldValueTooMany"},
		{name: "item", reason: "one item is refused: the list is left out", fields: "list", bad: `{list: [a, hidden-and-too-long]}`, good: `{list: [a, b]}`, says: "list FieldValueTooLong"},
		{name: "maxProperties", reason: "too large a map", fields: "names", bad: `{names: {a: "1", b: "2", c: "3"}}`, good: `{names: {a: "1"}}`, says: "names FieldValueTooMany"},
		{name: "key", reason: "the key of an author's own is not told", fields: "names", bad: `{names: {a.b/hidden: hidden-and-too-long}}`, good: `{names: {a: "1"}}`, says: "names FieldValueTooLong"},
		{name: "set", reason: "an item twice is refused as a whole, without a cause", fields: "unique", bad: `{unique: [a, a]}`, good: `{unique: [a, b]}`, says: "unique SchemaMismatch"},
		{name: "required", reason: "an object lacks what it needs", fields: "endpoint", bad: `{endpoint: {host: a}}`, good: `{endpoint: {host: a, port: 1}}`, says: "endpoint FieldValueRequired"},
		{name: "required beside", reason: "what lacks is beside what is written", fields: "endpoint.host phase", bad: `{host: a, phase: Good}`, says: "endpoint.host FieldValueRequired"},
		{name: "rule of an object", reason: "a rule over two fields", fields: "range.min range.max phase", bad: `{min: 5, max: 1, phase: Good}`, good: `{min: 5, max: 6, phase: Good}`, says: "range.min FieldValueInvalid, range.max FieldValueInvalid"},
		{name: "rule of the status", reason: "all fields may have a part in it", fields: "low high phase", bad: `{low: 5, high: 1, phase: Good}`, good: `{low: 5, high: 6, phase: Good}`, says: "low FieldValueInvalid, high FieldValueInvalid, phase FieldValueInvalid"},
		{name: "wrong type", reason: "the schema tells, without a request", fields: "size", bad: `{size: hidden}`, good: `{size: 1}`, says: "size FieldValueTypeInvalid"},
		{name: "format", reason: "a text that is no date", fields: "date", bad: `{date: hidden}`, good: `{date: "2026-01-02T03:04:05Z"}`, says: "date FieldValueTypeInvalid"},
		{name: "nested", reason: "what is beside it stays", fields: "outer.inner.name outer.inner.other", bad: `{name: hidden, other: b}`, good: `{name: good, other: b}`, says: "outer.inner.name FieldValueNotSupported"},
		{name: "list of objects", reason: "one of them lacks a field", fields: "addresses", bad: `{addresses: [{ip: hidden}, {zone: b}]}`, good: `{addresses: [{ip: a}]}`, says: "addresses FieldValueRequired"},
		{name: "two", reason: "both are left out, the third stays", fields: "phase text code", bad: `{phase: Worst, text: hidden-and-too-long, code: abc}`, good: `{phase: Good, text: a, code: abc}`, says: "phase FieldValueNotSupported, text FieldValueTooLong"},
		{name: "one after the other", reason: "the API server asks rules only where the schema has nothing to refuse", fields: "text range.min range.max", bad: `{text: hidden-and-too-long, min: 5, max: 1}`, good: `{text: a, min: 5, max: 6}`, says: "text FieldValueTooLong, range.min FieldValueInvalid, range.max FieldValueInvalid"},
		{name: "null", reason: "a value that is none", fields: "phase", bad: `{phase: null}`, good: `{phase: Good}`, says: "phase FieldValueNotSupported"},
		{name: "too large", reason: "a status that cannot be stored for its size", fields: "blob", bad: `{blob: ` + long + `}`, good: `{blob: a}`, says: "blob TooLarge"},
		{name: "required by the status", reason: "what must be there stays as it was", kind: "Needy", fields: "phase text", bad: `{phase: Worst, text: b}`, good: `{phase: Good, text: a}`, stays: true, says: "phase FieldValueNotSupported, text Rejected"},
		{name: "enum in a merge", reason: "a value that was written before is removed", kind: "Atomic", fields: "phase", bad: `{phase: Worst}`, good: `{phase: Good}`, says: "phase FieldValueNotSupported"},
		{name: "nested in a merge", reason: "a value that was written before is removed", kind: "Atomic", fields: "outer.inner.name outer.inner.other", bad: `{name: hidden, other: b}`, good: `{name: good, other: b}`, says: "outer.inner.name FieldValueNotSupported"},
	} {
		t.Run(row.name, bubbled(func(t *testing.T) {
			group := testkit.Unique(t) + ".example.com"
			strictKinds(t, group)
			if row.kind == "" {
				row.kind = "Keyed"
			}
			checkRefused(t, group, row)
		}))
	}
}

// TestLongMessages: a message that is longer than the kind's conditions may have is shortened, anyone who has a say in
// it.
func TestLongMessages(t *testing.T) {
	inMemory(t, func(t *testing.T) {
		group, ns, name := testkit.Unique(t)+".example.com", testkit.Namespace(t), testkit.Unique(t)
		strictKinds(t, group)
		row := refusedRow{kind: "Terse", fields: "phase"}
		c := refusedCase{t, row, ns, group, schema.GroupVersionResource{Group: group, Version: "v1", Resource: "terses"}, testkit.NewCounter()}
		conf := strings.Replace(row.conf(ns, name, group), "message: too many", `messageExpression: "'too many: ' + self.spec.values.text"`, 1)
		start(t, c.counter.Wrap(testkit.Config(t)), conf).ready()
		c.apply("replicas: 21, data: {key: value}", `{phase: Good, text: `+strings.Repeat("ä", 1000)+`}`)
		c.waitNamed("Valid", "False", "Invalid", false)
		c.apply("replicas: 1, data: {key: value}", `{phase: Worst, text: a}`)
		c.waitNamed("Ready", "True", "StatusFieldRefused", false)
		c.atRest()
	})
}

// TestRefusedFieldIsTriedAgain: a value that was refused is tried again where the definition of the kind may have
// changed, whether or not the operator has read another one.
func TestRefusedFieldIsTriedAgain(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		s := newShifting(t, ns, name)
		s.define("", "summary: {type: string, enum: [other]}")
		faults, counter := testkit.NewFaults(), testkit.NewCounter()
		startWith(t, counter.Wrap(faults.Wrap(testkit.Config(t))), func(_ *config.Operator, o *engine.Options) { o.DiscoveryInterval = 2 * patience }, s.config(summaryField)).ready()
		s.give("data: {key: value}")
		waitReason(t, s.gvr, ns, "StatusFieldRefused", "")
		settle(t, counter)
		faults.Cut(testkit.On("WATCH", "shiftings"))
		testkit.Eventually(t, patience, func() (bool, string) { return counter.Total() > 0, "it is not tried again" })
		quiet(t, counter)
		if n := counter.Mutating(); n != 1 {
			t.Errorf("%d writes once the watch was cut, want 1: %v", n, counter.Snapshot())
		}
		s.define("", "summary: {type: string}")
		waitReason(t, s.gvr, ns, "Ready", "all of a")
	})
}

// waitReason waits until Ready of the upstream a has that reason, and .status.summary that text.
func waitReason(t *testing.T, gvr schema.GroupVersionResource, ns, reason, summary string) {
	t.Helper()
	waitThat(t, gvr, ns, "a", func(u *obj) bool {
		_, have, _ := condition(u, "Ready")
		text, _, _ := unstructured.NestedString(u.Object, "status", "summary")
		return have == reason && text == summary
	})
}

// refusedCase is a row at work.
type refusedCase struct {
	*testing.T
	refusedRow
	ns, group string
	gvr       schema.GroupVersionResource
	counter   *testkit.Counter
}

func checkRefused(t *testing.T, group string, row refusedRow) {
	ns, name := testkit.Namespace(t), testkit.Unique(t)
	c := refusedCase{t, row, ns, group, schema.GroupVersionResource{Group: group, Version: "v1", Resource: strings.ToLower(row.kind) + "s"}, testkit.NewCounter()}
	run := func() *running { return start(t, c.counter.Wrap(testkit.Config(t)), row.conf(ns, name, group)).ready() }
	r := run()
	if row.stays {
		c.apply("replicas: 1, data: {key: value}", row.good)
		c.waitNamed("Ready", "True", "Ready", false)
	}
	// It does not matter how the upstream began.
	c.apply("replicas: 21, data: {key: value}", row.bad)
	c.waitNamed("Valid", "False", "Invalid", false)
	c.waitNamed("Ready", "False", "Invalid", false)
	c.apply("replicas: 1, data: {}", row.bad)
	c.waitNamed("Ready", "False", "RenderFailed", true)
	c.apply("replicas: 1, data: {key: value}", row.bad)
	c.waitNamed("Ready", "True", "StatusFieldRefused", true)
	c.hasFields()
	c.atRest()

	// Values that are refused are tried once in each process, and where someone asks for it.
	version := c.get().GetResourceVersion()
	r.halt()
	c.counter.Reset()
	run()
	atMostWrites(c.T, c.counter, 3, "values that are refused")
	if again := c.get().GetResourceVersion(); again != version {
		t.Errorf("a restart writes what the status says already: version %s, then %s", version, again)
	}
	c.counter.Reset()
	testkit.Patch(t, c.gvr, ns, "a", "somebody", `{"metadata":{"annotations":{"`+name+`.example.com/reconcile":"now"}}}`)
	if row.says != "size FieldValueTypeInvalid" {
		testkit.Eventually(t, patience, func() (bool, string) { return c.counter.Total() > 0, "nothing is tried" })
	}
	atMostWrites(c.T, c.counter, 3, "values that are refused")
	c.waitNamed("Ready", "True", "StatusFieldRefused", true)
	c.atRest()

	if row.good != "" {
		c.apply("replicas: 1, data: {key: value}", row.good)
		c.waitNamed("Ready", "True", "Ready", false)
		quiet(t, c.counter)
		for _, f := range row.paths() {
			if c.field(f[0]) == nil {
				t.Errorf("%s is missing: %v", f[0], c.get().Object["status"])
			}
		}
		c.counter.Reset()
		c.apply("replicas: 1, data: {key: value}", row.bad)
		c.waitNamed("Ready", "True", "StatusFieldRefused", true)
		atMostWrites(c.T, c.counter, 3, "values that are refused")
		c.hasFields()
	}
	c.apply("replicas: 21, data: {key: value}", row.bad)
	c.waitNamed("Ready", "False", "Invalid", false)
}

func (c refusedCase) apply(spec, values string) {
	c.Helper()
	testkit.Apply(c.T, c.ns, "{apiVersion: "+c.group+"/v1, kind: "+c.kind+", metadata: {name: a}, spec: {"+spec+", values: "+values+"}}")
}

func (c refusedCase) get() *unstructured.Unstructured {
	c.Helper()
	return testkit.Get(c.T, c.gvr, c.ns, "a")
}

func (c refusedCase) field(path string) any {
	c.Helper()
	v, _ := fieldpath.Get(c.get().Object, fieldpath.MustParse(path))
	return v
}

// waitNamed waits for a condition about the upstream as it is; names reports whether its message names what was
// refused.
func (c refusedCase) waitNamed(kind, status, reason string, names bool) {
	c.Helper()
	var message string
	testkit.Eventually(c.T, patience, func() (bool, string) {
		u := c.get()
		var haveStatus, haveReason string
		haveStatus, haveReason, message = condition(u, kind)
		observed, _, _ := unstructured.NestedInt64(u.Object, "status", "observedGeneration")
		return haveStatus == status && haveReason == reason && observed == u.GetGeneration(),
			fmt.Sprintf("%s is %s, %s at generation %d of %d: %.300s", kind, haveStatus, haveReason, observed, u.GetGeneration(), message)
	})
	for path, cause := range c.causes() {
		if want := path + " (" + cause + ")"; strings.Contains(message, want) != names {
			c.Errorf("%s says %.300s; names %s: want %t", kind, message, want, names)
		}
	}
	for _, value := range []string{"hidden", "Worst", "xxx", "A1"} {
		if strings.Contains(message, value) {
			c.Errorf("the message quotes a value: %.300s", message)
		}
	}
}

// hasFields: what is named is left out, or as it was; everything else is there.
func (c refusedCase) hasFields() {
	c.Helper()
	good, have := map[string]any{}, c.values(c.bad)
	if c.stays {
		good = c.values(c.good)
	}
	causes := c.causes()
	for _, f := range c.paths() {
		key, want := f[1], any(nil)
		switch _, refused := causes[f[0]]; {
		case refused && c.stays:
			want = good[key]
		case !refused:
			want = have[key]
		}
		if got := c.field(f[0]); fmt.Sprint(got) != fmt.Sprint(want) {
			c.Errorf("%s is %.100v, want %.100v", f[0], got, want)
		}
	}
}

func (c refusedCase) values(yaml string) map[string]any {
	c.Helper()
	values, _ := testkit.Parse(c.T, "{apiVersion: v1, kind: Values, metadata: {name: a}, values: "+yaml+"}").Object["values"].(map[string]any)
	return values
}

// atRest: whatever happens to the upstream and its downstream, nothing is requested.
func (c refusedCase) atRest() {
	c.Helper()
	settle(c.T, c.counter)
	for _, label := range []string{`"yes"`, "null"} {
		testkit.Patch(c.T, c.gvr, c.ns, "a", "somebody", `{"metadata":{"labels":{"touched":`+label+`}}}`)
		testkit.Patch(c.T, configMaps, c.ns, "a", "somebody", `{"metadata":{"labels":{"touched":`+label+`}}}`)
		atMostRequests(c.T, c.counter, 0, "at rest")
	}
}

// TestRefusedIdentifiers: an item of status.downstreams that the API server refuses, by whichever of its keys, keeps
// nothing else out of the status, costs nothing once it is known, and holds no deletion.
func TestRefusedIdentifiers(t *testing.T) {
	t.Parallel()
	group := testkit.Unique(t) + ".example.com"
	type row struct {
		name, limit, cause string
		second             bool // there is another one, which is not
	}
	rows := []row{
		{name: "list", cause: "FieldValueTooMany"},
		{name: "rule", cause: "FieldValueInvalid"},
		{name: "required", cause: "FieldValueRequired"},
		{name: "one", limit: `objectName: {type: string, pattern: "^a-second$"}`, cause: "FieldValueInvalid", second: true},
	}
	for _, key := range []string{"apiVersion", "kind", "namespace", "objectName", "uid", "hash", "state"} {
		rows = append(rows,
			row{name: key + " length", limit: key + ": {type: string, maxLength: 0}", cause: "FieldValueTooLong"},
			row{name: key + " pattern", limit: key + `: {type: string, pattern: "^never$"}`, cause: "FieldValueInvalid"},
			row{name: key + " enum", limit: key + ": {type: string, enum: [never]}", cause: "FieldValueNotSupported"})
	}
	for _, row := range rows {
		t.Run(row.name, bubbled(func(t *testing.T) {
			kind := "Of" + strings.ToLower(strings.ReplaceAll(row.name, " ", ""))
			singular := strings.ToLower(kind)
			items := "properties: {name: {type: string}"
			crd := strictCRD
			switch row.name {
			case "list":
				crd = replaceOnce(t, crd, "downstreams:\n                  type: array\n", "downstreams:\n                  type: array\n                  maxItems: 0\n")
			case "rule":
				crd = replaceOnce(t, crd, "items: {type: object, required: [name], ", "items: {type: object, x-kubernetes-validations: [{rule: \"self.name == 'never'\"}], required: [name], ")
			case "required":
				crd = replaceOnce(t, crd, "items: {type: object, required: [name], ", "items: {type: object, required: [name, never], ")
			default:
				crd = replaceOnce(t, crd, items, items+", "+row.limit)
			}
			testkit.InstallCRDs(t, strings.NewReplacer("GROUP", group, "KIND", kind, "PLURAL", singular+"s", "SINGULAR", singular,
				"LIST", "x-kubernetes-list-type: map\n                  x-kubernetes-list-map-keys: [type]", "NEEDS", "", "LIMIT", "32768").Replace(crd))
			ns, name := testkit.Namespace(t), testkit.Unique(t)
			r := refusedRow{name: row.name, kind: kind, fields: "phase", bad: `{phase: Good}`, says: "downstreams[name=config] " + row.cause}
			c := refusedCase{t, r, ns, group, schema.GroupVersionResource{Group: group, Version: "v1", Resource: singular + "s"}, testkit.NewCounter()}
			conf := r.conf(ns, name, group)
			if row.second {
				conf = replaceOnce(t, conf, "conventions:\n", "  - name: second\n    apiVersion: v1\n    kind: ConfigMap\n    template: |\n      metadata: {name: \"{{ .metadata.name }}-second\"}\nconventions:\n")
			}
			conf = replaceOnce(t, conf, "owner: {", "owner: {reference: false, ")
			o := start(t, c.counter.Wrap(testkit.Config(t)), conf).ready()
			c.apply("replicas: 1, data: {key: value}", r.bad)
			c.waitNamed("Ready", "True", "StatusFieldRefused", true)
			c.hasFields()
			if recorded := downstreamsOf(c.get()); recorded["config"] != nil || row.second != (recorded["second"]["uid"] != nil) {
				t.Errorf("the status records %v", recorded)
			}
			c.atRest()
			o.halt()
			c.counter.Reset()
			start(t, c.counter.Wrap(testkit.Config(t)), conf).ready()
			atMostWrites(c.T, c.counter, 4, "an item that is refused")
			c.waitNamed("Ready", "True", "StatusFieldRefused", true)
			c.atRest()
			c.apply("replicas: 21, data: {key: value}", r.bad)
			c.waitNamed("Valid", "False", "Invalid", false)
			deleteAndWait(t, c.gvr, ns, "a")
			waitGone(t, configMaps, ns, "a")
		}))
	}
}

// TestRefusedBefore: where the item of deletion.before cannot be stored, nothing goes, the conditions say why, and
// requests end. With a definition that takes it, the deletion goes on.
func TestRefusedBefore(t *testing.T) {
	inMemory(t, func(t *testing.T) {
		group := testkit.Unique(t) + ".example.com"
		define := func(objectName string) {
			crd := replaceOnce(t, strictCRD, "properties: {name: {type: string}}", "properties: {name: {type: string}, objectName: {type: string, "+objectName+"}}")
			testkit.InstallCRDs(t, strings.NewReplacer("GROUP", group, "KIND", "Drained", "PLURAL", "draineds", "SINGULAR", "drained",
				"LIST", "x-kubernetes-list-type: map\n                  x-kubernetes-list-map-keys: [type]", "NEEDS", "", "LIMIT", "32768").Replace(crd))
		}
		define("maxLength: 1")
		ns, name := testkit.Namespace(t), testkit.Unique(t)
		c := refusedCase{t, refusedRow{kind: "Drained", fields: "phase"}, ns, group,
			schema.GroupVersionResource{Group: group, Version: "v1", Resource: "draineds"}, testkit.NewCounter()}
		start(t, c.counter.Wrap(testkit.Config(t)), c.conf(ns, name, group)+beforeText).ready()
		c.apply("replicas: 1, data: {key: value}", `{phase: Good}`)
		c.waitNamed("Ready", "True", "Ready", false)
		testkit.Delete(t, c.gvr, ns, "a")
		waitsFor(t, c.gvr, ns, "a", "", ".status.downstreams[name=deletion.before] (FieldValueTooLong)")
		quiet(t, c.counter)
		mustExist(t, configMaps, ns, "a", "it went on without its record")
		mustBeAbsent(t, configMaps, ns, "a-drain", "it went on without its record")
		define("maxLength: 100")
		testkit.Eventually(t, patience, func() (bool, string) { return testkit.Find(t, configMaps, ns, "a-drain") != nil, "it does not go on" })
		testkit.Patch(t, configMaps, ns, "a-drain", "worker", drainDone)
		waitGone(t, c.gvr, ns, "a")
	})
}
