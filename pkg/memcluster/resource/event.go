package resource

import (
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// eventFields are the fields of an Event by their names in the core group, and in events.k8s.io. The others have the
// same names.
var eventFields = map[string]string{
	"involvedObject": "regarding", "message": "note", "reportingComponent": "reportingController",
	"firstTimestamp": "deprecatedFirstTimestamp", "lastTimestamp": "deprecatedLastTimestamp",
	"count": "deprecatedCount", "source": "deprecatedSource",
}

// isEvent reports whether objects are Events, which two groups serve and one stores.
func (r *Resource) isEvent() bool {
	return r.GVK.Kind == "Event" && (r.GVK.Group == "" || r.GVK.Group == "events.k8s.io")
}

// Stored is where the objects are stored.
func (r *Resource) Stored() schema.GroupResource {
	if r.isEvent() {
		return schema.GroupResource{Resource: r.GVR.Resource}
	}
	return r.GVR.GroupResource()
}

// viewEvent returns an Event of the other group as this one shows it.
func (r *Resource) viewEvent(u *unstructured.Unstructured) *unstructured.Unstructured {
	content := maps.Clone(u.Object)
	for core, other := range eventFields {
		from, to := core, other
		if r.GVK.Group == "" {
			from, to = other, core
		}
		if value, ok := content[from]; ok {
			content[to] = value
			delete(content, from)
		}
	}
	for _, field := range []string{"reportingComponent", "reportingController", "reportingInstance"} {
		if content[field] == "" { // a field that only the core group's type never omits
			delete(content, field)
		}
	}
	if r.GVK.Group == "" {
		for _, field := range []string{"reportingComponent", "reportingInstance"} {
			if content[field] == nil {
				content[field] = ""
			}
		}
	}
	content["apiVersion"] = r.GVK.GroupVersion().String()
	return &unstructured.Unstructured{Object: content}
}

// fieldSelectors are the fields by which objects of built-in kinds can be selected, besides their names, where a client
// is known to do so.
var fieldSelectors = map[schema.GroupKind][]string{
	{Kind: "Event"}: {"involvedObject.apiVersion", "involvedObject.fieldPath", "involvedObject.kind",
		"involvedObject.name", "involvedObject.namespace", "involvedObject.resourceVersion",
		"involvedObject.uid", "reason", "type"},
	{Kind: "Namespace"}: {"status.phase"},
	{Kind: "Pod"}:       {"spec.nodeName", "status.phase"},
	{Kind: "Secret"}:    {"type"},
}

// SelectableFields are the fields by which objects can be selected, besides metadata.name and metadata.namespace.
func (r *Resource) SelectableFields() []string {
	if r.Custom != nil {
		return nil
	}
	return fieldSelectors[r.GVK.GroupKind()]
}
