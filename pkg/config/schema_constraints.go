package config

import (
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/invopop/jsonschema"
)

const (
	dnsLabelPattern   = `^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`
	apiVersionPattern = `^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/[a-z]([-a-z0-9]*[a-z0-9])?|v[0-9]+[a-z0-9]*)$`
	kindPattern       = `^[A-Za-z]([-A-Za-z0-9]*[A-Za-z0-9])?$`
	keyPattern        = `^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?([A-Za-z0-9][-A-Za-z0-9_.]{0,61})?[A-Za-z0-9]$`
	subdomainPattern  = `^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	hostNamePattern   = `^[A-Za-z0-9_]([-A-Za-z0-9_]*[A-Za-z0-9_])?(\.[A-Za-z0-9_]([-A-Za-z0-9_]*[A-Za-z0-9_])?)*\.?$`
	resourcePattern   = `^[a-z]([-a-z0-9]*[a-z0-9])?$`
	schemaNamePattern = `^[A-Za-z_][-A-Za-z0-9_]*$`
	pathPattern       = `^(\.|\[).`
	statusPathPattern = `^\.status[.\[].`
)

// finalizerPattern is keyPattern with a domain that must be there.
var finalizerPattern = strings.Replace(keyPattern, "/)?", "/)", 1)

// maxName is the API server's limit for the names of most objects, and for the keys of a ConfigMap.
const maxName = 253

// maxLabel is the API server's limit for a DNS label.
const maxLabel = 63

// forms are the values of the tag form: what a text, a list's items or a map's keys look like.
var forms = map[string]jsonschema.Schema{
	"apiVersion":     {Pattern: apiVersionPattern},
	"atLeast":        {Pattern: atLeastPattern},
	"condition":      {Pattern: conditionType},
	"configMapKey":   {Pattern: `^[-._a-zA-Z0-9]+$`, MaxLength: number(maxName)},
	"delimiter":      {Pattern: `^\S+$`},
	"dnsLabel":       {Pattern: dnsLabelPattern},
	"namespaceOrAll": {Pattern: `^\*$|` + dnsLabelPattern},
	"finalizer":      {Pattern: finalizerPattern},
	"key":            {Pattern: keyPattern},
	"hostName":       {Pattern: hostNamePattern, MaxLength: number(maxName)},
	"kind":           {Pattern: kindPattern},
	"manager":        {MinLength: number(1), MaxLength: number(maxManager)},
	"member":         {Pattern: memberName},
	"objectName":     {Pattern: subdomainPattern, MaxLength: number(maxName)},
	"path":           {Pattern: pathPattern},
	"resource":       {Pattern: resourcePattern, MaxLength: number(maxLabel)},
	"schemaName":     {Pattern: schemaNamePattern},
	"share":          {Pattern: sharePattern},
	"statusPath":     {Pattern: statusPathPattern},
}

// constrain adds to the schema of a config type what its tags say, and what fields of it demand of one another.
func constrain(t reflect.Type, s *jsonschema.Schema) {
	for _, f := range reflect.VisibleFields(t) {
		p, ok := s.Properties.Get(jsonName(f))
		if !ok {
			continue
		}
		if values := enumOf(f); values != nil {
			p.Enum = anys(values)
		}
		if p.Type == "string" && p.Enum == nil && slices.Contains(s.Required, jsonName(f)) {
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
	form, ok := forms[name]
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
	reflect.TypeFor[Operator](): func(s *jsonschema.Schema) {
		property(s, "apiVersion").Const = APIVersion
		property(s, "kind").Const = Kind
		// What is missing here may be in the conventionsFile. Labels are not needed where every downstream has ownership Fields.
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
	reflect.TypeFor[sharedConventions](): func(s *jsonschema.Schema) {
		property(s, "apiVersion").Const = APIVersion
		property(s, "kind").Const = ConventionsKind
	},
	reflect.TypeFor[Activation](): func(s *jsonschema.Schema) {
		property(s, "apiVersion").Const = APIVersion
		property(s, "kind").Const = ActivationKind
		s.OneOf = oneOf(activationLocks...)
	},
	reflect.TypeFor[ActivationDNS](): func(s *jsonschema.Schema) {
		host := &jsonschema.Schema{Required: []string{"host"}, OneOf: oneOf("addresses", "interface"),
			Not: &jsonschema.Schema{Required: []string{"value"}}}
		txt := &jsonschema.Schema{Required: []string{"txt"}, Not: &jsonschema.Schema{AnyOf: oneOf("addresses", "interface")}}
		s.OneOf = []*jsonschema.Schema{host, txt}
	},
	reflect.TypeFor[ActivationSecret](): func(s *jsonschema.Schema) { s.OneOf = oneOf("env", "file") },
	reflect.TypeFor[ConversionDocument](): func(s *jsonschema.Schema) {
		property(s, "apiVersion").Const = APIVersion
		property(s, "kind").Const = ConversionKind
	},
	reflect.TypeFor[ConversionRule](): func(s *jsonschema.Schema) { s.OneOf = oneOf("move", "wrap", "unwrap", "forEach", "default") },
	reflect.TypeFor[ConversionStep](): func(s *jsonschema.Schema) { s.OneOf = oneOf("set", "remove") },
	reflect.TypeFor[Downstream]():     func(s *jsonschema.Schema) { s.OneOf = oneOf("template", "templateFile") },
	reflect.TypeFor[After](): func(s *jsonschema.Schema) {
		whole, name := *s, *property(s, "name")
		name.Description = ""
		*s = jsonschema.Schema{AnyOf: []*jsonschema.Schema{&name, &whole}, Description: s.Description}
		whole.Description = ""
	},
	reflect.TypeFor[Before](): func(s *jsonschema.Schema) { s.OneOf = oneOf("template", "templateFile") },
	reflect.TypeFor[Input](): func(s *jsonschema.Schema) {
		s.OneOf = oneOf("objectName", "fixedName", "list")
		s.AnyOf = []*jsonschema.Schema{{Required: []string{"apiVersion", "kind"}}, {Required: []string{"sql"}}}
		single := &jsonschema.Schema{Not: &jsonschema.Schema{AnyOf: oneOf("namespace", "missing")}}
		s.If, s.Then = &jsonschema.Schema{Required: []string{"list"}}, single
	},
	reflect.TypeFor[KindSchema](): func(s *jsonschema.Schema) {
		field := &jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Type: "string"}, {Type: "object"}}}
		property(s, "spec").PropertyNames = &jsonschema.Schema{Pattern: schemaNamePattern}
		property(s, "spec").AdditionalProperties, property(s, "types").AdditionalProperties = field, field
	},
	reflect.TypeFor[Source]():       func(s *jsonschema.Schema) { s.OneOf = oneOf("postgres", "mysql", "sqlite") },
	reflect.TypeFor[Rows]():         func(s *jsonschema.Schema) { s.OneOf = oneOf("postgres", "mysql", "sqlite") },
	reflect.TypeFor[DSNFrom]():      func(s *jsonschema.Schema) { s.OneOf = oneOf("env", "file", "secret") },
	reflect.TypeFor[Previous]():     func(s *jsonschema.Schema) { s.MinProperties = number(1) },
	reflect.TypeFor[PreviousHash](): func(s *jsonschema.Schema) { s.OneOf = oneOf("annotation", "label") },
	// What is missing in one of the config and the conventionsFile may be in the other.
	reflect.TypeFor[Conventions](): func(s *jsonschema.Schema) { s.Required = nil },
	reflect.TypeFor[Hash](): func(s *jsonschema.Schema) {
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
