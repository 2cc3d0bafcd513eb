package status

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Recorded identifies one downstream in the upstream's status.
type Recorded struct {
	// Name is the name of the downstream in the config; it is the key of the list, together with the object for a
	// downstream with several objects.
	Name string
	// Guessed means that the object may be of another downstream of its kind. In the status, its name has a question mark.
	Guessed bool
	// Replaced means that the object is to go, where its downstream has one object: another one has replaced it. In the
	// status, the object follows its name, after a slash.
	Replaced   bool
	APIVersion string
	Kind       string
	// Namespace is empty for a cluster-scoped object.
	Namespace string
	// ObjectName is the name of the object.
	ObjectName string
	UID        types.UID
	// Hash is the hash of the last applied document; empty for a Secret.
	Hash string
	// State is the state of the decision, StateFinished or StateFailed.
	State string
	// Baseline is the digest of what the last apply returned, if it differs from what was sent; else empty.
	Baseline string
}

// KeepBaselines returns list with the baselines in before for the same objects and hashes: a changed baseline alone
// does not need a write.
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

// Done reports whether the object was created once and has finished or failed.
func (r Recorded) Done() bool { return r.State == StateFinished || r.State == StateFailed }

// IsCurrent reports whether the object is certainly its downstream's, and no other one has replaced it.
func (r Recorded) IsCurrent() bool { return !r.Guessed && !r.Replaced }

// NameWithKind is the name of what a config has forgotten where it has the name with another kind.
func (r Recorded) NameWithKind() string { return r.Name + "." + strings.ToLower(r.Kind) }

// GroupKind is the kind of the object.
func (r Recorded) GroupKind() schema.GroupKind {
	return schema.FromAPIVersionAndKind(r.APIVersion, r.Kind).GroupKind()
}

// RecordedList returns the list for the status: sorted by name and object, without empty values.
func RecordedList(list []Recorded) []any {
	sorted := append([]Recorded(nil), list...)
	slices.SortFunc(sorted, func(a, b Recorded) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Namespace, b.Namespace),
			cmp.Compare(a.ObjectName, b.ObjectName))
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

const (
	// guessed follows a name of which it is not known whether it is the right one.
	guessed = "?"
	// replaced is between the name and the object.
	replaced = "/"
)

func (r Recorded) texts() map[string]string {
	name := r.Name
	switch {
	case r.Guessed:
		name += guessed
	case r.Replaced:
		name += replaced + types.NamespacedName{Namespace: r.Namespace, Name: r.ObjectName}.String()
	}
	return map[string]string{
		"name": name, "apiVersion": r.APIVersion, "kind": r.Kind, "namespace": r.Namespace, "objectName": r.ObjectName,
		"uid": string(r.UID), "hash": r.Hash, "state": r.State, "baseline": r.Baseline,
	}
}

// RecordedFrom parses the list in a status. It skips invalid values and items without a name, because anyone may have
// written the status.
func RecordedFrom(v any) []Recorded {
	list, _ := v.([]any)
	var out []Recorded
	for _, item := range list {
		m, _ := item.(map[string]any)
		text := func(key string) string { s, _ := m[key].(string); return s }
		name, isGuess := strings.CutSuffix(text("name"), guessed)
		name, _, isReplaced := strings.Cut(name, replaced)
		if name == "" {
			continue
		}
		out = append(out, Recorded{
			Name: name, Guessed: isGuess, Replaced: isReplaced, APIVersion: text("apiVersion"), Kind: text("kind"),
			Namespace:  text("namespace"),
			ObjectName: text("objectName"), UID: types.UID(text("uid")), Hash: text("hash"), State: text("state"),
			Baseline: text("baseline"),
		})
	}
	return out
}
