package crddiff

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// loss is what an object that is valid by one schema meets in another one.
type loss struct {
	path      string
	level     Level
	what      string // the difference, and its consequence
	fix       string
	ratcheted bool
}

// comparison collects what gets lost from one schema to another.
type comparison struct{ losses []loss }

// losses compares two schemas in one direction.
func losses(from, to *structuralschema.Structural) []loss {
	c := &comparison{}
	c.node("", withHead(from), withHead(to))
	return c.losses
}

// withHead declares what every object has: a schema can only restrict it.
func withHead(s *structuralschema.Structural) *structuralschema.Structural {
	text := structuralschema.Structural{Generic: structuralschema.Generic{Type: "string"}}
	whole, metadata := *s, s.Properties["metadata"]
	metadata.Type = "object"
	whole.Properties = withDefaults(s.Properties, map[string]structuralschema.Structural{"apiVersion": text, "kind": text})
	metadata.Properties = withDefaults(metadata.Properties,
		map[string]structuralschema.Structural{"name": text, "generateName": text})
	whole.Properties["metadata"] = metadata
	return &whole
}

func withDefaults(own, more map[string]structuralschema.Structural) map[string]structuralschema.Structural {
	all := maps.Clone(more)
	maps.Copy(all, own)
	return all
}

const (
	fixVersion = "add a new version with this schema, and a conversion"
	fixKeep    = "keep what was allowed, or fix the objects first and then remove it from a new version"
	refused    = "existing objects are refused"
)

// add records a loss.
func (c *comparison) add(path string, level Level, fix, format string, args ...any) {
	c.losses = append(c.losses, loss{path: at(path), level: level, what: fmt.Sprintf(format, args...), fix: fix})
}

// narrowed is for what the API server ratchets: it compares the value with the one that is stored.
func (c *comparison) narrowed(path, format string, args ...any) {
	c.add(path, Breaking, fixKeep, format+": objects with other values are refused", args...)
	c.losses[len(c.losses)-1].ratcheted = true
}

func at(path string) string {
	if path == "" {
		return "."
	}
	return path
}

// node compares the schemas of one value. What is below a value whose type has changed says nothing more.
func (c *comparison) node(path string, from, to *structuralschema.Structural) {
	if !c.types(path, from, to) {
		return
	}
	if from.Nullable && !to.Nullable {
		c.add(
			path,
			Breaking,
			"keep nullable: true, or replace null in all objects first",
			"nullable was taken away: null is dropped, and refused in lists",
		)
	}
	switch {
	case from.Default.Object == nil && to.Default.Object == nil, reflect.DeepEqual(from.Default.Object, to.Default.Object):
	case from.Default.Object == nil:
		c.add(
			path,
			Conversion,
			fixVersion,
			"the default %s was added: objects without the field get it when they are read",
			show(to.Default.Object),
		)
	default:
		c.add(path, Conversion, fixVersion, "the default was %s and is %s: objects without the field change their meaning",
			show(from.Default.Object), show(to.Default.Object))
	}
	if !from.XEmbeddedResource && to.XEmbeddedResource {
		c.add(path, Breaking, fixKeep,
			"x-kubernetes-embedded-resource was added: a value without apiVersion, kind and metadata is refused")
	}
	c.merging(path, from, to)
	before := limits(from)
	if from.Type == "boolean" && !from.Nullable && len(before.Enum) == 0 {
		before.Enum = []structuralschema.JSON{{Object: false}, {Object: true}}
	}
	c.bounds(path, before, limits(to), from.Type == "integer")
	c.required(path, from, to)
	c.rules(path, from.XValidations, to.XValidations)
	if from.XEmbeddedResource && !to.XEmbeddedResource { // which keeps them, declared or not
		from = withHead(from)
		metadata := from.Properties["metadata"]
		metadata.XPreserveUnknownFields = true
		from.Properties["metadata"] = metadata
	}
	c.fields(path, from, to)
	if from.Items != nil && to.Items != nil {
		c.node(path+"[*]", from.Items, to.Items)
	}
}

// limits are the limits of a value. Formats that API servers do not know restrict nothing.
func limits(s *structuralschema.Structural) *structuralschema.ValueValidation {
	v := structuralschema.ValueValidation{}
	if s.ValueValidation != nil {
		v = *s.ValueValidation
	}
	format := &spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{s.Type}, Format: v.Format}}
	if len(crdvalidation.GetUnrecognizedFormats(format, environment.DefaultCompatibilityVersion())) > 0 {
		v.Format = ""
	}
	return &v
}

// types reports whether what is below is worth comparing.
func (c *comparison) types(path string, from, to *structuralschema.Structural) bool {
	before, after := typeOf(from), typeOf(to)
	switch {
	case before == after, after == "":
		return true
	case before == "integer" && after == "number", after == intOrString && (before == "integer" || before == "string"):
		return true
	case before == "":
		c.add(path, Breaking, fixVersion, "any type was allowed, now only %s: objects with another one are refused", after)
		return true
	}
	c.add(path, Conversion, fixVersion, "the type was %s and is %s: %s", before, after, refused)
	return false
}

const intOrString = "integer or string"

func typeOf(s *structuralschema.Structural) string {
	if s.XIntOrString {
		return intOrString
	}
	return s.Type
}

// merging compares how server-side apply merges a value, and what must be unique for that.
func (c *comparison) merging(path string, from, to *structuralschema.Structural) {
	before, after := value(from.XListType, "atomic"), value(to.XListType, "atomic")
	switch {
	case from.Type != "array":
	case before != after && after != "atomic":
		c.add(
			path,
			Breaking,
			fixVersion,
			"x-kubernetes-list-type was %s and is %s: lists with duplicates are refused, and managers of the list merge "+
				"otherwise",
			before,
			after,
		)
	case before != after:
		c.add(path, Breaking, fixVersion,
			"x-kubernetes-list-type was %s and is atomic: each apply replaces the items of other managers", before)
	case !slices.Equal(slices.Sorted(slices.Values(from.XListMapKeys)), slices.Sorted(slices.Values(to.XListMapKeys))):
		c.add(
			path,
			Breaking,
			fixVersion,
			"x-kubernetes-list-map-keys were [%s] and are [%s]: lists with duplicates are refused, and applies merge other "+
				"items",
			strings.Join(from.XListMapKeys, ", "),
			strings.Join(to.XListMapKeys, ", "),
		)
	}
	if before, after := value(from.XMapType, "granular"), value(to.XMapType, "granular"); before != after {
		c.add(path, Breaking, fixVersion,
			"x-kubernetes-map-type was %s and is %s: applies of several managers merge otherwise", before, after)
	}
}

func value(s *string, otherwise string) string {
	if s == nil {
		return otherwise
	}
	return *s
}

func (c *comparison) required(path string, from, to *structuralschema.Structural) {
	if to.ValueValidation == nil {
		return
	}
	for _, name := range to.ValueValidation.Required {
		older := from.ValueValidation != nil && slices.Contains(from.ValueValidation.Required, name)
		switch before := from.Properties[name].Default.Object; {
		case to.Properties[name].Default.Object != nil, older && before == nil:
		case older:
			c.add(path+"."+name, Breaking, "keep the default",
				"the required field has lost its default: objects without it are refused")
		default:
			c.add(path+"."+name, Breaking, "give it a default, or add it to all objects before it is required",
				"the field is newly required and has no default: objects without it are refused at their next update, also "+
					"unchanged")
		}
	}
}

func (c *comparison) rules(path string, from, to apiextensionsv1.ValidationRules) {
	isOptional := func(r apiextensionsv1.ValidationRule) bool { return r.OptionalOldSelf != nil && *r.OptionalOldSelf }
	for _, r := range to {
		known := slices.ContainsFunc(from, func(f apiextensionsv1.ValidationRule) bool {
			return f.Rule == r.Rule && isOptional(f) == isOptional(r)
		})
		if known {
			continue
		}
		transition := strings.Contains(r.Rule, "oldSelf")
		text := "objects that do not pass are refused"
		if transition {
			text = "it compares with the stored value, so each change is checked"
		}
		c.add(
			path,
			Breaking,
			"fix the objects first, or write optionalOldSelf: true and let unchanged values pass",
			"the rule %q was added: %s",
			r.Rule,
			text,
		)
		c.losses[len(c.losses)-1].ratcheted = !transition
	}
}

// fields compares the fields of objects and the values of maps.
func (c *comparison) fields(path string, from, to *structuralschema.Structural) {
	if from.XPreserveUnknownFields && !to.XPreserveUnknownFields && mapOf(to) == nil {
		c.add(
			path,
			Conversion,
			"keep x-kubernetes-preserve-unknown-fields, or declare the fields",
			"unknown fields are not kept any more: they are dropped",
		)
	}
	for _, name := range slices.Sorted(maps.Keys(from.Properties)) {
		before := from.Properties[name]
		where := path + "." + name
		if after, ok := to.Properties[name]; ok {
			c.node(where, &before, &after)
			continue
		}
		switch values := mapOf(to); {
		case values != nil:
			c.node(where, &before, values)
		case !to.XPreserveUnknownFields:
			c.add(where, Conversion, fixVersion+" that moves the field, or keeps it in an annotation",
				"the schema does not declare the field: its value is dropped when an object is read, and lost when it is written")
		}
	}
	c.newFields(path, from, to)
	switch before, after := mapOf(from), mapOf(to); {
	case before != nil && after != nil:
		c.node(path+"[*]", before, after)
	case before != nil && !to.XPreserveUnknownFields:
		c.add(path, Conversion, fixVersion, "additionalProperties was removed: keys that are not declared are dropped")
	case after != nil && from.XPreserveUnknownFields:
		c.add(path, Breaking, fixKeep,
			"any value was kept here, now additionalProperties decides: objects with another one are refused")
		c.newValue(path+"[*]", after)
	}
}

// newFields looks at fields that are declared only now. Objects can have them where keys or unknown fields were
// allowed.
func (c *comparison) newFields(path string, from, to *structuralschema.Structural) {
	before := mapOf(from)
	for _, name := range slices.Sorted(maps.Keys(to.Properties)) {
		field := to.Properties[name]
		switch _, known := from.Properties[name]; {
		case known:
		case before != nil:
			c.node(path+"."+name, before, &field)
		case from.XPreserveUnknownFields:
			c.add(path+"."+name, Breaking, fixKeep,
				"any value was kept here, now the schema decides: objects with another one are refused")
			c.newValue(path+"."+name, &field)
		}
	}
}

// newValue looks at a value that is declared only now, where any was kept: what the schema of objects in it does not
// declare is dropped.
func (c *comparison) newValue(path string, to *structuralschema.Structural) {
	for to.Type == "array" && to.Items != nil {
		path, to = path+"[*]", to.Items
	}
	if to.Type == "object" {
		c.fields(path, &structuralschema.Structural{Extensions: structuralschema.Extensions{XPreserveUnknownFields: true}},
			to)
	}
}

// mapOf is the schema of the values of a map; nil where only the declared fields are kept.
func mapOf(s *structuralschema.Structural) *structuralschema.Structural {
	switch {
	case s.AdditionalProperties == nil:
		return nil
	case s.AdditionalProperties.Structural != nil:
		return s.AdditionalProperties.Structural
	case s.AdditionalProperties.Bool:
		return &structuralschema.Structural{Extensions: structuralschema.Extensions{XPreserveUnknownFields: true}}
	}
	return nil
}
