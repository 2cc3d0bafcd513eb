package simpleschema

import (
	"fmt"

	"k8s.io/apiserver/pkg/cel"
)

// immutableRule is what makes a field immutable as long as it is set; see kept.
const immutableRule = "self == oldSelf"

// isFixed reports whether a field, or one below it in the same object, is immutable: by the marker, or by a rule that
// says the same. Whoever may remove an item of a list or an entry of a map may make another one.
func isFixed(s schema) bool {
	rules, _ := s["x-kubernetes-validations"].([]any)
	for _, r := range rules {
		if rule, _ := r.(schema); rule["rule"] == immutableRule {
			return true
		}
	}
	properties, _ := s["properties"].(schema)
	for _, property := range properties {
		if field, _ := property.(schema); isFixed(field) {
			return true
		}
	}
	return false
}

// kept is the rule of an object that one of its fields stays once it is set: without a value there is no old one to
// compare with.
func kept(field string) schema {
	escaped, _ := cel.Escape(field)
	return schema{"rule": fmt.Sprintf("!has(oldSelf.%s) || has(self.%s)", escaped, escaped),
		"message": field + " is immutable, or a field in it: it cannot be removed"}
}
