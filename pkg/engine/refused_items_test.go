package engine_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// TestRefusedIdentifiers: an item of status.downstreams that the API server refuses, by whichever of its keys, keeps nothing
// else out of the status, costs nothing once it is known, and holds no deletion.
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
			c.told("Ready", "True", "StatusFieldRefused", true)
			c.hasFields()
			if recorded := downstreamsOf(c.get()); recorded["config"] != nil || row.second != (recorded["second"]["uid"] != nil) {
				t.Errorf("the status records %v", recorded)
			}
			c.atRest()
			o.halt()
			c.counter.Reset()
			start(t, c.counter.Wrap(testkit.Config(t)), conf).ready()
			atMostWrites(c.T, c.counter, 4, "an item that is refused")
			c.told("Ready", "True", "StatusFieldRefused", true)
			c.atRest()
			c.apply("replicas: 21, data: {key: value}", r.bad)
			c.told("Valid", "False", "Invalid", false)
			deleteAndWait(t, c.gvr, ns, "a")
			waitGone(t, configMaps, ns, "a")
		}))
	}
}

// TestRefusedBefore: where the item of deletion.before cannot be stored, nothing goes, the conditions say why, and requests end.
// With a definition that takes it, the deletion goes on.
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
		c.told("Ready", "True", "Ready", false)
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
