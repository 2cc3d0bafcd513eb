package simpleschema

import (
	"fmt"
	"slices"
)

// checkList reports what an API server refuses of the items of a set, or of a list with keys.
func (p *parser) checkList(s schema) {
	keys, _ := s["x-kubernetes-list-map-keys"].([]any)
	item, _ := s["items"].(schema)
	switch s["x-kubernetes-list-type"] {
	case "set":
		inner := item["x-kubernetes-list-type"]
		if item["type"] == "object" || inner != nil && inner != "atomic" {
			p.fail("use listType=map, or remove it", "the items of a set must be text, numbers or booleans")
		}
	case "map":
		p.checkKeys(item, keys)
		return
	}
	if len(keys) > 0 {
		p.fail("add listType=map", "listMapKey has no effect without listType=map")
	}
}

func (p *parser) checkKeys(item schema, keys []any) {
	properties, ok := item["properties"].(schema)
	switch {
	case !ok:
		p.fail("declare their type in types", "listType=map is for lists of objects with fields")
		return
	case len(keys) == 0:
		p.fail("add listMapKey=FIELD", "listType=map has no key")
	}
	required, _ := item["required"].([]any)
	for i, key := range keys {
		field, declared := properties[fmt.Sprint(key)].(schema)
		switch {
		case !declared:
			p.fail("name one of their fields", "listMapKey=%s: the items have no such field", clip(fmt.Sprint(key)))
		case slices.Contains(keys[:i], key):
			p.fail("remove one of them", "listMapKey=%s is given twice", key)
		case field["type"] == "object" || field["type"] == "array":
			p.fail("name a field with text, a number or a boolean", "listMapKey=%s: the field is an %s", key, field["type"])
		case field["default"] == nil && !slices.Contains(required, key):
			p.fail("add required=true or a default to the field", "listMapKey=%s: the field may be missing", key)
		}
	}
}
