package load

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corollary-dev/corollary/pkg/config"
)

// disjoint reports whether no object can be an upstream of both: by the namespaces that both list, by the labels of the
// object or by those of its namespace. Labels change, so that an object can go from one to the other.
func disjoint(w, other *config.Watch) bool {
	return apart(w, other) || contradict(w.LabelSelector, other.LabelSelector) ||
		contradict(w.NamespaceSelector, other.NamespaceSelector)
}

// apart reports whether both list namespaces, and none is the same: no object goes from one to the other.
func apart(w, other *config.Watch) bool {
	return len(w.Namespaces) > 0 && len(other.Namespaces) > 0 &&
		!slices.ContainsFunc(w.Namespaces, func(ns string) bool { return slices.Contains(other.Namespaces, ns) })
}

// contradict reports whether no labels satisfy both selectors. Requirements for different keys do not depend on each
// other, so one key for which no value is left decides.
func contradict(a, b *metav1.LabelSelector) bool {
	if a == nil || b == nil {
		return false
	}
	keys := map[string]*allowed{}
	return !allow(keys, a) || !allow(keys, b)
}

// allowed is what requirements leave of the values of one label.
type allowed struct {
	exists, missing bool
	// oneOf are the values that are left; nil: any. not are those that are excluded.
	oneOf, not []string
}

// allow adds a selector's requirements; false: some key has nothing left.
func allow(keys map[string]*allowed, s *metav1.LabelSelector) bool {
	at := func(key string) *allowed {
		if keys[key] == nil {
			keys[key] = &allowed{}
		}
		return keys[key]
	}
	for key, value := range s.MatchLabels {
		at(key).in([]string{value})
	}
	for _, r := range s.MatchExpressions {
		switch k := at(r.Key); r.Operator {
		case metav1.LabelSelectorOpIn:
			k.in(r.Values)
		case metav1.LabelSelectorOpNotIn:
			k.not = append(k.not, r.Values...)
		case metav1.LabelSelectorOpExists:
			k.exists = true
		case metav1.LabelSelectorOpDoesNotExist:
			k.missing = true
		}
	}
	for _, k := range keys {
		if !k.possible() {
			return false
		}
	}
	return true
}

func (k *allowed) in(values []string) {
	k.exists = true
	if k.oneOf == nil {
		k.oneOf = slices.Clone(values)
		return
	}
	k.oneOf = slices.DeleteFunc(k.oneOf, func(v string) bool { return !slices.Contains(values, v) })
}

func (k *allowed) possible() bool {
	if k.exists && k.missing {
		return false
	}
	return k.oneOf == nil || slices.ContainsFunc(k.oneOf, func(v string) bool { return !slices.Contains(k.not, v) })
}
