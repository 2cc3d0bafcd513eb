//go:build controlplane

package memcluster_test

import "fmt"

const (
	definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	thing       = "/apis/NS.example.com/v1/namespaces/NS/things"
)

// definitionOf is a CustomResourceDefinition of the kind Thing, whose versions have these fields in spec.
func definitionOf(metadata, spec string, versions ...string) string {
	text := ""
	for i, version := range versions {
		text += fmt.Sprintf(`{"name":"%s","served":true,"storage":%v,"subresources":{"status":{}},"schema":{"openAPIV3Schema":{"type":"object",
			"properties":{"spec":{"type":"object","properties":%s},"status":{"type":"object","properties":{"a":{"type":"string"}}}}}}},`,
			version, i == len(versions)-1, spec)
	}
	return `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"things.NS.example.com"` + metadata + `},
		"spec":{"group":"NS.example.com","scope":"Namespaced","names":{"kind":"Thing","plural":"things"},"versions":[` + text[:len(text)-1] + `]}}`
}

func thingWith(metadata, spec string) string {
	return `{"apiVersion":"NS.example.com/v1","kind":"Thing","metadata":{"name":"x"` + metadata + `},"spec":` + spec + `}`
}

// definitionRows returns the rows about writes of CustomResourceDefinitions. Controllers of the real server do the rest, so the next
// request is repeated.
func definitionRows() []row {
	const one = definitions + "/things.NS.example.com"
	const text, number = `{"a":{"type":"string"}}`, `{"a":{"type":"integer"}}`
	const both = `{"a":{"type":"string"},"b":{"type":"string"}}`
	established := step{method: "GET", path: one, collect: true}
	gone := step{method: "GET", path: one, collect: true}
	there := step{method: "GET", path: thing + "/x", collect: true}
	return []row{
		{"a definition is created", "its kind is served, and its status says so", []step{
			{method: "POST", path: definitions + asA, body: definitionOf("", text, "v1")}, established,
			{method: "POST", path: definitions + asA, body: definitionOf("", text, "v1")},
			{method: "POST", path: thing, body: thingWith("", `{"a":"1","b":"2"}`), collect: true}, {method: "DELETE", path: one}, gone}},
		{"a definition is applied", "once more changes nothing, and a dry run serves nothing", []step{
			{method: "APPLY", path: one + asA + "&dryRun=All", body: definitionOf("", text, "v1")}, {method: "GET", path: one},
			{method: "APPLY", path: one + asA, body: definitionOf("", text, "v1")}, established,
			{method: "APPLY", path: one + asA, body: definitionOf("", text, "v1")}, {method: "GET", path: one},
			{method: "DELETE", path: one}, gone}},
		{"a definition has another version", "status.storedVersions keeps the former", []step{
			{method: "APPLY", path: one + asA, body: definitionOf("", text, "v1")}, established,
			{method: "POST", path: thing, body: thingWith("", `{"a":"1"}`), collect: true},
			{method: "APPLY", path: one + asA, body: definitionOf("", text, "v1", "v2")}, established,
			{method: "GET", path: "/apis/NS.example.com/v2/namespaces/NS/things/x", collect: true},
			{method: "MERGE", path: "/apis/NS.example.com/v2/namespaces/NS/things/x", body: `{"spec":{"a":"2"}}`}, // is stored as v2
			{method: "MERGE", path: one + "/status", body: `{"status":{"storedVersions":["v2"]}}`},
			{method: "APPLY", path: one + asA, body: definitionOf("", text, "v2")},
			{method: "GET", path: thing + "/x", collect: true}, {method: "DELETE", path: one}, gone}},
		{"a version that managedFields name leaves", "each apply fails", []step{
			{method: "APPLY", path: one + asA, body: definitionOf("", both, "v1", "v2")}, established,
			{method: "APPLY", path: thing + "/x" + asA, body: thingWith("", `{"a":"1"}`), collect: true},
			{method: "APPLY", path: "/apis/NS.example.com/v2/namespaces/NS/things/x" + asB,
				body: `{"apiVersion":"NS.example.com/v2","kind":"Thing","metadata":{"name":"x"},"spec":{"b":"1"}}`},
			{method: "APPLY", path: one + asA, body: definitionOf("", both, "v2")}, established,
			{method: "GET", path: thing + "/x", collect: true},
			{method: "APPLY", path: "/apis/NS.example.com/v2/namespaces/NS/things/x" + asA,
				body: `{"apiVersion":"NS.example.com/v2","kind":"Thing","metadata":{"name":"x"},"spec":{"a":"2"}}`},
			{method: "APPLY", path: "/apis/NS.example.com/v2/namespaces/NS/things/x" + asB,
				body: `{"apiVersion":"NS.example.com/v2","kind":"Thing","metadata":{"name":"x"},"spec":{"b":"2"}}`},
			{method: "DELETE", path: one}, gone}},
		{"a definition is updated", "objects have the new schema, also those that were written before", []step{
			{method: "POST", path: definitions + asA, body: definitionOf("", text, "v1")}, established,
			{method: "POST", path: thing, body: thingWith("", `{"a":"1"}`), collect: true},
			{method: "PUT", path: one + asA, body: definitionOf(`,"resourceVersion":"${2.metadata.resourceVersion}"`, `{}`, "v1")},
			there, {method: "PUT", path: one + asA, body: definitionOf("", `{}`, "v1")},
			{method: "MERGE", path: one + asA, body: `{"metadata":{"labels":{"a":"1"}}}`}, {method: "DELETE", path: one}, gone}},
		{"a watch of a kind whose definition changes", "ends; one of another kind goes on", []step{
			{method: "POST", path: definitions, body: definitionOf("", text, "v1")}, established,
			{method: "POST", path: thing, body: thingWith("", `{"a":"1"}`), collect: true},
			{method: "GET", path: thing + "?watch=true&resourceVersion=${3.metadata.resourceVersion}", watch: true},
			{method: "GET", path: cm + "?watch=true&resourceVersion=${3.metadata.resourceVersion}", watch: true},
			{method: "MERGE", path: one, body: `{"metadata":{"labels":{"a":"1"}}}`},
			{method: "POST", path: thing, body: `{"apiVersion":"NS.example.com/v1","kind":"Thing","metadata":{"name":"y"}}`}, {events: 1, of: 4},
			{method: "APPLY", path: one + asA + force, body: definitionOf("", number, "v1")}, {ends: true, of: 4},
			{method: "POST", path: cm, body: configMapA}, {events: 1, of: 5}, {method: "DELETE", path: one}, gone}},
		{"a definition is deleted", "and with it its objects, whose watch sees it; the kind is not served any more", []step{
			{method: "POST", path: definitions, body: definitionOf("", text, "v1")}, established,
			{method: "POST", path: thing, body: thingWith("", `{"a":"1"}`), collect: true},
			{method: "GET", path: thing + "?watch=true&resourceVersion=${3.metadata.resourceVersion}", watch: true},
			{method: "DELETE", path: one}, {events: 1, of: 4}, gone, there,
			{method: "POST", path: definitions, body: definitionOf("", text, "v1")}, established, there, {method: "DELETE", path: one}, gone}},
		{"an object holds a definition that is being deleted", "with its finalizer; no other is created", []step{
			{method: "POST", path: definitions, body: definitionOf("", text, "v1")}, established,
			{method: "POST", path: thing, body: thingWith(`,"finalizers":["example.com/hold"]`, `{"a":"1"}`), collect: true},
			{method: "DELETE", path: one}, there, established,
			{method: "POST", path: thing, body: `{"apiVersion":"NS.example.com/v1","kind":"Thing","metadata":{"name":"y"}}`},
			{method: "MERGE", path: thing + "/x", body: `{"spec":{"a":"2"},"metadata":{"finalizers":null}}`}, gone}},
	}
}
