package crdschema

import (
	"fmt"

	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/status"
)

// Status is the schema of the status of an operator that has no fields of its own in it: the generation, conditions and the
// list of downstreams at a path such as .status.downstreams, or none where that is empty. Both lists are keyed, so that
// several writers can apply their items; with several, where a downstream has an item for each of its objects, the list of downstreams is
// written as a whole.
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

// Below is a path such as .status.downstreams as seen from .status. The path has to be one that a loaded config holds, or
// another that is known to parse.
func Below(path string) fieldpath.Path { return fieldpath.MustParse(path)[1:] }

// list is a list keyed by key.
func list(key string, properties Node, required ...any) Node {
	items := Object(properties)
	items["required"] = append([]any{key}, required...)
	return Node{"type": "array", "items": items, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": []any{key}}
}

// recordedItem is an item of the list of downstreams with every key that it can have.
func recordedItem() Node {
	items := status.RecordedList([]status.Recorded{{Name: "-", APIVersion: "-", Kind: "-", Namespace: "-", ObjectName: "-", UID: "-",
		Hash: "-", State: "-", Baseline: "-"}})
	item, _ := items[0].(map[string]any)
	return item
}

// Lacking is the part of a schema of .status that a kind cannot store, nil where it stores all. The paths are those of the
// fields left out, sorted, such as .status.observedGeneration.
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

// PrinterColumns are columns for kubectl get: whether an object is ready, why not, and its age. ready is the type of the
// condition.
func PrinterColumns(ready string) []any {
	of := func(field string) string { return fmt.Sprintf(`.status.conditions[?(@.type==%q)].%s`, ready, field) }
	return []any{
		Node{"name": ready, "type": "string", "jsonPath": of("status")},
		Node{"name": "Reason", "type": "string", "jsonPath": of("reason")},
		ageColumn(),
	}
}

func ageColumn() Node {
	return Node{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}
}
