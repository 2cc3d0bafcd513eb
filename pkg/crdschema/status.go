package crdschema

import (
	"fmt"

	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/status"
)

// Status returns the schema of the status that an operator without status.fields writes: generation, conditions, and
// the list of downstreams at a path such as .status.downstreams, if not empty. Lists are keyed, so that several writers
// can apply items; if several is true, a downstream has several items, so that list is atomic.
func Status(downstreams string, several bool) Node {
	text, number := Node{"type": "string"}, Node{"type": "integer", "format": "int64"}
	all := Object(Node{"observedGeneration": number, "conditions": list("type", Node{
		"type": text, "status": text, "observedGeneration": number, "reason": text, "message": text,
		"lastTransitionTime": Node{"type": "string", "format": "date-time"},
	}, "status", "lastTransitionTime", "reason", "message")})
	if downstreams != "" {
		item := Node{}
		for key := range recordedItem() {
			item[key] = text
		}
		items := list("name", item)
		if several {
			items["x-kubernetes-list-type"] = "atomic"
			delete(items, "x-kubernetes-list-map-keys")
		}
		Place(all, Below(downstreams), items)
	}
	return all
}

// Below returns a path such as .status.downstreams without the step .status. It panics if the path does not parse;
// those of a loaded config do.
func Below(path string) fieldpath.Path { return fieldpath.MustParse(path)[1:] }

// list returns the schema of a list with a map key.
func list(key string, properties Node, required ...any) Node {
	items := Object(properties)
	items["required"] = append([]any{key}, required...)
	return Node{"type": "array", "items": items, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": []any{key}}
}

// recordedItem returns the schema of an item of the list of downstreams, with all its keys.
func recordedItem() Node {
	items := status.RecordedList([]status.Recorded{{Name: "-", APIVersion: "-", Kind: "-",
		Namespace: "-", ObjectName: "-", UID: "-",
		Hash: "-", State: "-", Baseline: "-"}})
	item, _ := items[0].(map[string]any)
	return item
}

// Lacking returns the part of a schema of .status that a kind cannot store, or nil if it stores all of it, and the
// sorted paths of the missing fields, such as .status.observedGeneration.
func Lacking(wanted Node, kind *status.Storable) (lacking Node, paths []string) {
	_, paths = kind.Prune(sample(wanted).(map[string]any))
	for _, path := range paths {
		if lacking == nil {
			lacking = Node{}
		}
		Merge(lacking, pick(wanted, Below(path))) // what Prune returns parses, and its first step is .status
	}
	return lacking, paths
}

// PrinterColumns returns columns for kubectl get: whether an object is ready, why not, and its age. ready is the type
// of the condition.
func PrinterColumns(ready string) []any {
	column := func(field string) string { return fmt.Sprintf(`.status.conditions[?(@.type==%q)].%s`, ready, field) }
	return []any{
		Node{"name": ready, "type": "string", "jsonPath": column("status")},
		Node{"name": "Reason", "type": "string", "jsonPath": column("reason")},
		ageColumn(),
	}
}

func ageColumn() Node {
	return Node{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}
}
