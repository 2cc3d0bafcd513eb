package status

import (
	"sort"

	"k8s.io/apimachinery/pkg/types"
)

// Recorded identifies one downstream in the upstream's status.
type Recorded struct {
	// Name is the downstream's in the config; it is the key of the list.
	Name       string
	APIVersion string
	Kind       string
	// Namespace is empty for a cluster-scoped object.
	Namespace string
	// ObjectName is the object's own name.
	ObjectName string
	UID        types.UID
	// Hash is the digest of what was asked for when it was last applied; empty for a Secret.
	Hash string
	// State is the decision's word, StateFinished or StateFailed.
	State string
}

// Done tells whether it was made once and has done its work, well or badly.
func (r Recorded) Done() bool { return r.State == StateFinished || r.State == StateFailed }

// RecordedList is the list as the status has it: sorted by name, empty values left out.
func RecordedList(list []Recorded) []any {
	sorted := append([]Recorded(nil), list...)
	sort.Slice(sorted, func(i, j int) bool { return sorted[i].Name < sorted[j].Name })
	out := make([]any, 0, len(sorted))
	for _, r := range sorted {
		item := map[string]any{}
		for key, value := range r.texts() {
			if value != "" {
				item[key] = value
			}
		}
		out = append(out, item)
	}
	return out
}

func (r Recorded) texts() map[string]string {
	return map[string]string{
		"name": r.Name, "apiVersion": r.APIVersion, "kind": r.Kind, "namespace": r.Namespace, "objectName": r.ObjectName,
		"uid": string(r.UID), "hash": r.Hash, "state": r.State,
	}
}

// RecordedFrom reads a list as it stands in a status. What is no list, and items without a name, are skipped: the status
// may have been written by anyone.
func RecordedFrom(v any) []Recorded {
	list, _ := v.([]any)
	var out []Recorded
	for _, item := range list {
		m, _ := item.(map[string]any)
		text := func(key string) string { s, _ := m[key].(string); return s }
		if text("name") == "" {
			continue
		}
		out = append(out, Recorded{
			Name: text("name"), APIVersion: text("apiVersion"), Kind: text("kind"), Namespace: text("namespace"),
			ObjectName: text("objectName"), UID: types.UID(text("uid")), Hash: text("hash"), State: text("state"),
		})
	}
	return out
}
