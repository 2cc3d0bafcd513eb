package generated

import (
	"encoding/json"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/canonical"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/operator"
)

// HashOf is the hash of a document with digests of its generated keys and of the item of forEach that it is of: an
// object says itself which of its keys were generated, to whoever they belong by now, and with which other one its
// values go, whatever their names. It fits into a label. A document without generated keys has only its own.
func HashOf(d *operator.Downstream, hash string, item any) string {
	switch {
	case len(d.Generated) == 0:
		return hash
	case item == nil:
		return hash + "-" + digestOf(keysOf(d))
	}
	return shortened(hash) + "-" + digestOf(keysOf(d)) + "-" + digestOf([]string{identityOf(item)})
}

// identityOf is what distinguishes an item from others and stays when it is edited: its name, as in lists of
// Kubernetes, its key if the items are those of a map, or all of it.
func identityOf(item any) string {
	if name := nameOf(item); name != "" {
		return name
	}
	text, _ := json.Marshal(item) // values of CEL always are JSON
	return string(text)
}

// nameOf is the name or key of an item, with which of them it is; empty if it has none.
func nameOf(item any) string {
	m, _ := item.(map[string]any)
	for _, key := range []string{"name", "key"} {
		if name, ok := m[key].(string); ok {
			return key + "=" + name
		}
	}
	return ""
}

// IsUnnamed reports whether an item of forEach has fields and neither a name nor a key: whoever edits it makes it
// another one. A text or a number is its own name.
func IsUnnamed(item any) bool {
	_, hasFields := item.(map[string]any)
	return hasFields && nameOf(item) == ""
}

// shortened leaves room for the item in a label.
func shortened(hash string) string { return hash[:min(len(hash), 63-2*(1+digestLength))] }

func keysOf(d *operator.Downstream) []string {
	keys := make([]string, len(d.Generated))
	for k, g := range d.Generated {
		keys[k] = g.Key
	}
	return keys
}

func digestOf(keys []string) string {
	keys = slices.Clone(keys)
	slices.Sort(keys)
	return canonical.ExactDigest(strings.Join(keys, ",")).String()[:digestLength]
}

const digestLength = 7

// splitHash is what HashOf joins; keys and item are empty if the document had none, or a process applied it that did
// not say so.
func splitHash(hash string) (doc, keys, item string) {
	version, rest, _ := strings.Cut(hash, "-")
	doc, rest, _ = strings.Cut(rest, "-")
	keys, item, _ = strings.Cut(rest, "-")
	return shortened(version + "-" + doc), keys, item
}

// ItemIn is the digest of the item of forEach that an object with this hash is of; empty if it does not say.
func ItemIn(hash string) string {
	_, _, item := splitHash(hash)
	return item
}

// Change is how the generated keys of an object differ from those that the config has.
type Change struct {
	// Known is false if nothing says it.
	Known bool
	// Dropped are those that the object has and nothing gives any more, Added those that the config has in addition and
	// the object lacks.
	Dropped, Added []string
	// Others are keys of other managers that nothing gives, and that were generated or, without Known, may have been.
	Others []string
}

// Renamed reports whether one key has taken the place of another one.
func (c Change) Renamed() bool { return c.Known && len(c.Dropped) == 1 && len(c.Added) == 1 }

// maxTried is of how many keys of an object it is tried which were generated.
const maxTried = 64

// ChangeOf compares the generated keys of an object, as its hash has them, with those of the document w.
func ChangeOf(d *operator.Downstream, w *operator.DesiredObject, live *drift.Live) Change {
	if live.Secret == nil || w.Secret == nil {
		return Change{}
	}
	now := keysOf(d)
	lacking := without(now, slices.Concat(live.Secret.Keys, live.Secret.Others))
	ours, others := without(live.Secret.Keys, w.Secret.Keys), without(live.Secret.Others, w.Secret.Keys)
	doc, keys, _ := splitHash(live.Hash)
	if keys == "" {
		// only generated has changed, so nothing else can have given what is dropped
		if wanted, _, _ := splitHash(w.Hash); doc == wanted {
			return Change{Known: true, Dropped: ours, Added: lacking}
		}
		return Change{}
	}
	for _, dropped := range subsets(slices.Concat(ours, others), ours) {
		for _, added := range subsets(now, lacking) {
			if digestOf(append(without(now, added), dropped...)) == keys {
				return Change{Known: true, Dropped: dropped, Added: both(added, lacking), Others: both(dropped, others)}
			}
		}
	}
	return Change{Others: others}
}

func without(list, other []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(key string) bool { return slices.Contains(other, key) })
}

// both are the keys that are in two lists.
func both(list, other []string) []string { return without(list, without(list, other)) }

// subsets are those of keys that may have changed: none, each one, the whole, and of few keys each two.
func subsets(keys, whole []string) [][]string {
	list := [][]string{nil}
	for i := range keys[:min(len(keys), maxTried)] {
		list = append(list, keys[i:i+1])
	}
	for i := range keys {
		for k := i + 1; k < len(keys) && len(keys) <= 8; k++ {
			list = append(list, []string{keys[i], keys[k]})
		}
	}
	return append(list, whole)
}

// Of are the generated values that a Secret has for the document w, decoded, by their keys. That of a renamed key has
// the new one.
func Of(d *operator.Downstream, w *operator.DesiredObject, obj *unstructured.Unstructured) map[string]string {
	values := map[string]string{}
	take := func(from, to string) {
		if text, ok := textOf(obj, from); ok {
			values[to] = text
		}
	}
	for _, key := range keysOf(d) {
		take(key, key)
	}
	if c := ChangeOf(d, w, d.View.Live(obj)); c.Renamed() {
		take(c.Dropped[0], c.Added[0])
	}
	return values
}

// HasAll reports whether values has each generated value of a downstream.
func HasAll(d *operator.Downstream, values map[string]string) bool {
	return !slices.ContainsFunc(keysOf(d), func(key string) bool { return values[key] == "" })
}
