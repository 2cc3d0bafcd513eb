package apply

import (
	"context"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TakeOver makes the fields of the managers in from ours, and returns the object as stored; it sends no request if
// there are none. No value changes: only metadata.managedFields is written, by one JSON patch. The next Apply then
// removes what it does not contain; otherwise a field that another manager set would stay forever. Entries of both
// operations count, Update (kubectl create, helm, a hand-written operator) and Apply; those for subresources stay.
// ErrConflict: live changed since. ErrGone, ErrReplaced: as for Apply.
func (c *Client) TakeOver(ctx context.Context, t Target, live *unstructured.Unstructured,
	from []string) (*unstructured.Unstructured,
	error) {
	entries, ok := mergeEntries(live, c.manager, from)
	if !ok {
		return live, nil
	}
	p := patchOf(live)
	p.add(entries, "metadata", "managedFields")
	out, failed := p.send(ctx, c, op{verb: "patch", doing: "taking over the fields of", needs: "patch"}, t)
	if failed != nil {
		return nil, failed
	}
	return out, nil
}

// WithFieldsTakenOver returns live as TakeOver would leave the object itself, without a request. It does not change
// live, and returns it if there is nothing to take over.
func WithFieldsTakenOver(live *unstructured.Unstructured, manager string, from []string) *unstructured.Unstructured {
	entries, ok := mergeEntries(live, manager, from)
	if !ok {
		return live
	}
	metadata := maps.Clone(live.Object["metadata"].(map[string]any))
	metadata["managedFields"] = entries
	out := maps.Clone(live.Object)
	out["metadata"] = metadata
	return &unstructured.Unstructured{Object: out}
}

// mergeEntries returns live's managedFields with the entries of the managers in from merged into manager's Apply entry,
// and false if there are none. The entry has one version of the kind: manager's own if it has an entry, else the
// object's if some entry has that. Paths of other versions are not converted: most versions have the same fields, and
// an unknown path removes nothing.
func mergeEntries(live *unstructured.Unstructured, manager string, from []string) (merged []any, ok bool) {
	var into map[string]any
	var theirs []map[string]any
	for _, item := range managedFields(live) {
		e, _ := item.(map[string]any)
		name, operation := textOf(e, "manager"), textOf(e, "operation")
		switch {
		case textOf(e, "subresource") != "" || textOf(e, "fieldsType") != "FieldsV1":
			merged = append(merged, item)
		case name == manager && operation == "Apply":
			into = e
		case name != manager && slices.Contains(from, name):
			theirs = append(theirs, e)
		default:
			merged = append(merged, item)
		}
	}
	if len(theirs) == 0 {
		return nil, false
	}
	if into == nil {
		into = theirs[max(0, slices.IndexFunc(theirs, func(e map[string]any) bool {
			return e["apiVersion"] == live.GetAPIVersion()
		}))]
	}
	into = maps.Clone(into)
	for _, e := range theirs {
		into["fieldsV1"] = union(fieldsOf(into), fieldsOf(e))
		if t := textOf(e, "time"); t > textOf(into, "time") { // RFC 3339 in UTC sorts as text
			into["time"] = t
		}
	}
	into["manager"], into["operation"] = manager, "Apply"
	return append([]any{into}, merged...), true
}

func managedFields(u *unstructured.Unstructured) []any {
	metadata, _ := u.Object["metadata"].(map[string]any)
	list, _ := metadata["managedFields"].([]any)
	return list
}

func textOf(m map[string]any, key string) string {
	s, _ := m[key].(string)
	return s
}

func fieldsOf(entry map[string]any) map[string]any {
	f, _ := entry["fieldsV1"].(map[string]any)
	return f
}

// union returns what either of two nodes of fieldsV1 owns. A node with nothing below owns its place; others own it only
// with ".". Neither is changed.
func union(a, b map[string]any) map[string]any {
	out := make(map[string]any, max(len(a), len(b)))
	maps.Copy(out, a)
	for key, value := range b {
		theirs, _ := value.(map[string]any)
		ours, both := out[key].(map[string]any)
		if !both {
			out[key] = value
			continue
		}
		below := union(ours, theirs)
		if len(below) > 0 && (len(ours) == 0 || len(theirs) == 0) {
			below["."] = map[string]any{}
		}
		out[key] = below
	}
	return out
}
