package status

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// Recorded identifies one downstream in the upstream's status.
type Recorded struct {
	// Name is the downstream's in the config; it is the key of the list, together with the place for a downstream with several objects.
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
	// Baseline is the digest of what the last apply returned, where that is not what was sent; else empty.
	Baseline string
}

// KeepBaselines returns list with the baselines of before in the place of other ones of the same object and document: a
// baseline that has changed is worth no write by itself.
func KeepBaselines(list, before []Recorded) []Recorded {
	out := slices.Clone(list)
	for i, r := range out {
		for _, old := range before {
			if old.Name == r.Name && old.UID == r.UID && old.Hash == r.Hash && old.Baseline != "" && r.Baseline != "" {
				out[i].Baseline = old.Baseline
			}
		}
	}
	return out
}

// Done reports whether it was made once and finished, well or badly.
func (r Recorded) Done() bool { return r.State == StateFinished || r.State == StateFailed }

// RecordedList is the list as the status has it: sorted by name and place, empty values left out.
func RecordedList(list []Recorded) []any {
	sorted := append([]Recorded(nil), list...)
	slices.SortFunc(sorted, func(a, b Recorded) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.ObjectName, b.ObjectName))
	})
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
		"uid": string(r.UID), "hash": r.Hash, "state": r.State, "baseline": r.Baseline,
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
			Baseline: text("baseline"),
		})
	}
	return out
}
