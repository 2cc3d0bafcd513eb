package schema

import (
	"encoding/json"
	"reflect"
	"slices"
	"strconv"

	"github.com/invopop/jsonschema"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/config/conversion"
	"github.com/corollary-dev/corollary/pkg/config/forms"
	"github.com/corollary-dev/corollary/pkg/config/lock"
	"github.com/corollary-dev/corollary/pkg/config/query"
	"github.com/corollary-dev/corollary/pkg/config/tags"
)

// patterns are the values of the tag form: what a text, a list's items or a map's keys look like.
var patterns = map[string]jsonschema.Schema{
	"apiVersion":     {Pattern: forms.APIVersionPattern},
	"atLeast":        {Pattern: forms.AtLeastPattern},
	"condition":      {Pattern: forms.ConditionType},
	"configMapKey":   {Pattern: `^[-._a-zA-Z0-9]+$`, MaxLength: number(forms.MaxName)},
	"delimiter":      {Pattern: `^\S+$`},
	"dnsLabel":       {Pattern: forms.DNSLabelPattern},
	"namespaceOrAll": {Pattern: `^\*$|` + forms.DNSLabelPattern},
	"finalizer":      {Pattern: forms.FinalizerPattern},
	"key":            {Pattern: forms.KeyPattern},
	"hostName":       {Pattern: forms.HostNamePattern, MaxLength: number(forms.MaxName)},
	"kind":           {Pattern: forms.KindPattern},
	"manager":        {MinLength: number(1), MaxLength: number(forms.MaxManager)},
	"member":         {Pattern: forms.MemberName},
	"objectName":     {Pattern: forms.SubdomainPattern, MaxLength: number(forms.MaxName)},
	"path":           {Pattern: forms.PathPattern},
	"resource":       {Pattern: forms.ResourcePattern, MaxLength: number(forms.MaxLabel)},
	"schemaName":     {Pattern: forms.SchemaNamePattern},
	"share":          {Pattern: forms.SharePattern},
	"statusPath":     {Pattern: forms.StatusPathPattern},
}

// constrain adds to the schema of a config type what its tags say, and what fields of it demand of one another.
func constrain(t reflect.Type, s *jsonschema.Schema) {
	for _, f := range reflect.VisibleFields(t) {
		p, ok := s.Properties.Get(tags.Name(f))
		if !ok {
			continue
		}
		if values := tags.Enum(f); values != nil {
			p.Enum = anys(values)
		}
		if p.Type == "string" && p.Enum == nil && slices.Contains(s.Required, tags.Name(f)) {
			p.MinLength = number(1)
		}
		p.UniqueItems = f.Tag.Get("unique") != ""
		bound(p, f.Tag.Get("min"), f.Tag.Get("max"))
		applyForm(p, f.Tag.Get("form"))
	}
	if more, ok := constraints[t]; ok {
		more(s)
	}
}

// bound sets the limits of a number, or of the length of a list or map.
func bound(s *jsonschema.Schema, lower, upper string) {
	least, most := length(lower), length(upper)
	switch s.Type {
	case "array":
		s.MinItems, s.MaxItems = least, most
	case "object":
		s.MinProperties, s.MaxProperties = least, most
	default:
		s.Minimum, s.Maximum = json.Number(lower), json.Number(upper)
	}
}

func length(tag string) *uint64 {
	if tag == "" {
		return nil
	}
	n, err := strconv.ParseUint(tag, 10, 64)
	if err != nil {
		panic("the tag min or max of a config type: " + err.Error()) // of types that are compiled in: a test reads them all
	}
	return &n
}

func applyForm(s *jsonschema.Schema, name string) {
	if name == "" {
		return
	}
	form, ok := patterns[name]
	if !ok {
		panic("unknown form " + name + " in the tag of a config type") // of types that are compiled in: a test reads them all
	}
	switch s.Type {
	case "array":
		s = s.Items
	case "object":
		s.PropertyNames = &jsonschema.Schema{}
		s = s.PropertyNames
	}
	s.Pattern, s.MaxLength = form.Pattern, form.MaxLength
	if form.MinLength != nil {
		s.MinLength = form.MinLength
	}
}

// constraints are what fields of one type demand of one another, and the values that a kind of file fixes.
var constraints = map[reflect.Type]func(*jsonschema.Schema){
	reflect.TypeFor[config.Operator](): func(s *jsonschema.Schema) {
		property(s, "apiVersion").Const = config.APIVersion
		property(s, "kind").Const = config.Kind
		// What is missing here may be in the conventionsFile. Labels are not needed where every downstream has ownership
		// Fields.
		s.Required = without(s.Required, "conventions")
		// null, which takes an operator out of a chart's values, must not be refused.
		s.AnyOf = []*jsonschema.Schema{{Required: []string{"watch", "status"}}, {Required: []string{"source"}}}
		s.If = &jsonschema.Schema{Required: []string{"conventionsFile"}}
		s.Then = jsonschema.TrueSchema
		whole := &jsonschema.Schema{Properties: jsonschema.NewProperties(), Required: []string{"conventions"}}
		here := &jsonschema.Schema{Required: []string{"fieldManager", "hash"}, Properties: jsonschema.NewProperties()}
		here.Properties.Set("hash", &jsonschema.Schema{AnyOf: oneOf("annotation", "label")})
		whole.Properties.Set("conventions", here)
		s.Else = whole
	},
	reflect.TypeFor[config.SharedConventions](): func(s *jsonschema.Schema) {
		property(s, "apiVersion").Const = config.APIVersion
		property(s, "kind").Const = config.ConventionsKind
	},
	reflect.TypeFor[lock.Activation](): func(s *jsonschema.Schema) {
		property(s, "apiVersion").Const = config.APIVersion
		property(s, "kind").Const = lock.ActivationKind
		s.OneOf = oneOf(lock.ActivationLocks...)
	},
	reflect.TypeFor[lock.ActivationDNS](): func(s *jsonschema.Schema) {
		host := &jsonschema.Schema{Required: []string{"host"}, OneOf: oneOf("addresses", "interface"),
			Not: &jsonschema.Schema{Required: []string{"value"}}}
		txt := &jsonschema.Schema{Required: []string{"txt"}, Not: &jsonschema.Schema{AnyOf: oneOf("addresses", "interface")}}
		s.OneOf = []*jsonschema.Schema{host, txt}
	},
	reflect.TypeFor[lock.ActivationSecret](): func(s *jsonschema.Schema) { s.OneOf = oneOf("env", "file") },
	reflect.TypeFor[conversion.ConversionDocument](): func(s *jsonschema.Schema) {
		property(s, "apiVersion").Const = config.APIVersion
		property(s, "kind").Const = conversion.ConversionKind
	},
	reflect.TypeFor[conversion.ConversionRule](): func(s *jsonschema.Schema) {
		s.OneOf = oneOf("move", "wrap", "unwrap", "forEach", "default")
	},
	reflect.TypeFor[conversion.ConversionStep](): func(s *jsonschema.Schema) { s.OneOf = oneOf("set", "remove") },
	reflect.TypeFor[config.Downstream](): func(s *jsonschema.Schema) {
		s.OneOf = oneOf("template", "templateFile")
	},
	reflect.TypeFor[config.After](): func(s *jsonschema.Schema) {
		whole, name := *s, *property(s, "name")
		name.Description = ""
		*s = jsonschema.Schema{AnyOf: []*jsonschema.Schema{&name, &whole}, Description: s.Description}
		whole.Description = ""
	},
	reflect.TypeFor[config.Before](): func(s *jsonschema.Schema) { s.OneOf = oneOf("template", "templateFile") },
	reflect.TypeFor[config.Input](): func(s *jsonschema.Schema) {
		s.OneOf = oneOf("objectName", "fixedName", "list")
		s.AnyOf = []*jsonschema.Schema{{Required: []string{"apiVersion", "kind"}}, {Required: []string{"sql"}}}
		single := &jsonschema.Schema{Not: &jsonschema.Schema{AnyOf: oneOf("namespace", "missing")}}
		s.If, s.Then = &jsonschema.Schema{Required: []string{"list"}}, single
	},
	reflect.TypeFor[config.KindSchema](): func(s *jsonschema.Schema) {
		field := &jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Type: "string"}, {Type: "object"}}}
		property(s, "spec").PropertyNames = &jsonschema.Schema{Pattern: forms.SchemaNamePattern}
		property(s, "spec").AdditionalProperties, property(s, "types").AdditionalProperties = field, field
	},
	reflect.TypeFor[query.Source]():        func(s *jsonschema.Schema) { s.OneOf = oneOf("postgres", "mysql", "sqlite") },
	reflect.TypeFor[query.Rows]():          func(s *jsonschema.Schema) { s.OneOf = oneOf("postgres", "mysql", "sqlite") },
	reflect.TypeFor[query.DSNFrom]():       func(s *jsonschema.Schema) { s.OneOf = oneOf("env", "file", "secret") },
	reflect.TypeFor[config.Previous]():     func(s *jsonschema.Schema) { s.MinProperties = number(1) },
	reflect.TypeFor[config.PreviousHash](): func(s *jsonschema.Schema) { s.OneOf = oneOf("annotation", "label") },
	// What is missing in one of the config and the conventionsFile may be in the other.
	reflect.TypeFor[config.Conventions](): func(s *jsonschema.Schema) { s.Required = nil },
	reflect.TypeFor[config.Hash](): func(s *jsonschema.Schema) {
		s.Not = &jsonschema.Schema{Required: []string{"annotation", "label"}}
	},
}

func oneOf(keys ...string) []*jsonschema.Schema {
	var out []*jsonschema.Schema
	for _, k := range keys {
		out = append(out, &jsonschema.Schema{Required: []string{k}})
	}
	return out
}

// property returns the schema of a key that the type has; one that it has not is a mistake in this file.
func property(s *jsonschema.Schema, key string) *jsonschema.Schema {
	p, ok := s.Properties.Get(key)
	if !ok {
		panic("the config types have no field " + key)
	}
	return p
}

func without(list []string, drop string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return s == drop })
}

func number(n uint64) *uint64 { return &n }
