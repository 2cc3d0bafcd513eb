package cli

import (
	"encoding/json"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/yaml"

	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/pipeline"
	"github.com/corollary-dev/corollary/pkg/status"
)

// missingStatus returns the lines that the upstream's CustomResourceDefinition lacks to store what the config writes
// into the status: YAML to merge below openAPIV3Schema.properties. It is empty where nothing is missing or known.
func missingStatus(p *pipeline.Pipeline) string {
	if p.Storable == nil || p.Upstream.Schema == nil {
		return ""
	}
	wanted := wantedStatus(p)
	_, dropped := p.Storable.Prune(sample(wanted).(map[string]any))
	if len(dropped) == 0 {
		return ""
	}
	missing := map[string]any{}
	for _, path := range dropped {
		// What Prune returns parses, and its first step is .status.
		steps := fieldpath.MustParse(path)[1:]
		merge(missing, pick(wanted, steps))
	}
	if _, declared := p.Upstream.Schema.Properties["status"]; !declared {
		missing["type"] = "object"
	}
	text, err := yaml.Marshal(map[string]any{"status": missing})
	if err != nil {
		return ""
	}
	return strings.TrimRight(string(text), "\n")
}

// node is a JSON schema, as a CustomResourceDefinition has it.
type node = map[string]any

func object(properties node) node { return node{"type": "object", "properties": properties} }

// list is a list keyed by key, so that several writers can apply their items.
func list(key string, properties node, required ...any) node {
	items := object(properties)
	items["required"] = append([]any{key}, required...)
	return node{"type": "array", "items": items, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": []any{key}}
}

// wantedStatus is the schema of everything that the config writes below .status.
func wantedStatus(p *pipeline.Pipeline) node {
	all := statusNode(p.Config.Status.Downstreams)
	schemas := p.FieldSchemas()
	for i, f := range p.Config.Status.Fields {
		place(all, f.Path, fieldNode(schemas[i]))
	}
	return all
}

// statusNode is the schema of the status of a config that has no fields of its own in it; downstreams is the path of the
// list of downstreams, or empty.
func statusNode(downstreams string) node {
	text, number := node{"type": "string"}, node{"type": "integer", "format": "int64"}
	all := object(node{"observedGeneration": number, "conditions": list("type", node{
		"type": text, "status": text, "observedGeneration": number, "reason": text, "message": text,
		"lastTransitionTime": node{"type": "string", "format": "date-time"},
	}, "status", "lastTransitionTime", "reason", "message")})
	if downstreams != "" {
		item := node{}
		for key := range recordedItem() {
			item[key] = text
		}
		place(all, downstreams, list("name", item))
	}
	return all
}

// fieldNode is the schema of a status field; what a CEL expression gives may be known to its author alone, and then
// anything can be stored.
func fieldNode(s *spec.Schema) node {
	n := node{}
	text, err := json.Marshal(s)
	if s == nil || err != nil || utiljson.Unmarshal(text, &n) != nil {
		return node{"x-kubernetes-preserve-unknown-fields": true}
	}
	return n
}

// recordedItem is an item of the list of downstreams with every key that it can have.
func recordedItem() node {
	items := status.RecordedList([]status.Recorded{{Name: "-", APIVersion: "-", Kind: "-", Namespace: "-", ObjectName: "-", UID: "-", Hash: "-", State: "-"}})
	item, _ := items[0].(map[string]any)
	return item
}

// place puts a schema at a path such as .status.downstreams; root is that of .status.
func place(root node, path string, s node) {
	steps := fieldpath.MustParse(path)[1:]
	for i, step := range steps {
		properties := root["properties"].(node)
		if i == len(steps)-1 {
			properties[step.Field] = s
			return
		}
		next, ok := properties[step.Field].(node)
		if !ok {
			next = object(node{})
			properties[step.Field] = next
		}
		root = next
	}
}

// sample is a value with every field of a schema.
func sample(s node) any {
	switch s["type"] {
	case "object":
		value := map[string]any{}
		properties, _ := s["properties"].(node)
		for name, property := range properties {
			value[name] = sample(property.(node))
		}
		return value
	case "array":
		items, _ := s["items"].(node)
		return []any{sample(items)}
	}
	return "-"
}

// pick is the part of a schema that leads to a path and everything below it. Items of lists take no step.
func pick(s node, path fieldpath.Path) node {
	if len(path) == 0 {
		return s
	}
	if items, ok := s["items"].(node); ok {
		return node{"items": pick(items, path)}
	}
	name := path[0].Field
	return node{"properties": node{name: pick(s["properties"].(node)[name].(node), path[1:])}}
}

// merge adds the fields of from to into, maps key by key.
func merge(into, from node) {
	for key, value := range from {
		have, both := into[key].(node)
		more, ok := value.(node)
		if both && ok {
			merge(have, more)
			continue
		}
		if ok {
			fresh := node{}
			merge(fresh, more)
			value = fresh
		}
		into[key] = value
	}
}
