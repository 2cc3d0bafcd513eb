package config

import (
	"slices"
	"strings"

	"github.com/invopop/jsonschema"
)

const (
	dnsLabelPattern   = `^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`
	apiVersionPattern = `^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/[a-z]([-a-z0-9]*[a-z0-9])?|v[0-9]+[a-z0-9]*)$`
	kindPattern       = `^[A-Za-z]([-A-Za-z0-9]*[A-Za-z0-9])?$`
	keyPattern        = `^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?([A-Za-z0-9][-A-Za-z0-9_.]{0,61})?[A-Za-z0-9]$`
	subdomainPattern  = `^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	pathPattern       = `^(\.|\[).`
	statusPathPattern = `^\.status[.\[].`
)

// finalizerPattern is keyPattern with a domain that must be there.
var finalizerPattern = strings.Replace(keyPattern, "/)?", "/)", 1)

// patterns are the forms of text fields, as TYPE.key.
var patterns = map[string]string{
	"Metadata.name":            dnsLabelPattern,
	"ServiceAccount.namespace": dnsLabelPattern,
	"ServiceAccount.name":      subdomainPattern,
	"Watch.apiVersion":         apiVersionPattern,
	"Watch.kind":               kindPattern,
	"Input.name":               memberName,
	"Input.apiVersion":         apiVersionPattern,
	"Input.kind":               kindPattern,
	"Rule.fieldPath":           pathPattern,
	"Downstream.name":          memberName,
	"Downstream.apiVersion":    apiVersionPattern,
	"Downstream.kind":          kindPattern,
	"Before.apiVersion":        apiVersionPattern,
	"Before.kind":              kindPattern,
	"Conventions.finalizer":    finalizerPattern,
	"Hash.annotation":          keyPattern,
	"Hash.label":               keyPattern,
	"Owner.annotation":         keyPattern,
	"Pause.annotation":         keyPattern,
	"Status.downstreams":       statusPathPattern,
	"StatusField.path":         statusPathPattern,
	"Conditions.ready":         conditionType,
	"Conditions.valid":         conditionType,
	"Conditions.reconciling":   conditionType,
	"Conditions.stalled":       conditionType,
	"Input.namespace":          dnsLabelPattern,
	"Reconcile.annotation":     keyPattern,
	"Previous.finalizer":       keyPattern,
	"PreviousHash.annotation":  keyPattern,
	"PreviousHash.label":       keyPattern,
	"PreviousOwner.annotation": keyPattern,
	"Guard.maxChanged":         sharePattern,
	"Guard.maxDeleted":         sharePattern,
	"Confirm.namespace":        dnsLabelPattern,
	"Confirm.configMap":        subdomainPattern,
	"Confirm.key":              `^[-._a-zA-Z0-9]+$`,
}

// constrain adds to a type's schema what Go's types do not say.
func constrain(name string, s *jsonschema.Schema) {
	if s.Properties == nil {
		return
	}
	for pair := s.Properties.Oldest(); pair != nil; pair = pair.Next() {
		field := name + "." + pair.Key
		if p, ok := patterns[field]; ok {
			pair.Value.Pattern = p
		}
		if values, ok := enumFields[field]; ok {
			pair.Value.Enum = anys(values)
		}
		if pair.Value.Type == "string" && pair.Value.Enum == nil && slices.Contains(s.Required, pair.Key) {
			pair.Value.MinLength = number(1)
		}
	}
	if more, ok := constraints[name]; ok {
		more(s)
	}
}

var constraints = map[string]func(*jsonschema.Schema){
	"Operator": func(s *jsonschema.Schema) {
		property(s, "apiVersion").Const = APIVersion
		property(s, "kind").Const = Kind
		property(s, "downstreams").MinItems = number(1)
		d := property(s, "delimiters")
		d.MinItems, d.MaxItems, d.UniqueItems = number(2), number(2), true
		d.Items = &jsonschema.Schema{Type: "string", Pattern: `^\S+$`}
		property(s, "parameters").PropertyNames = &jsonschema.Schema{Pattern: memberName}
		// What is missing here may stand in the conventionsFile.
		s.Required = without(s.Required, "conventions")
		s.If = &jsonschema.Schema{Required: []string{"conventionsFile"}}
		s.Then = jsonschema.TrueSchema
		whole := &jsonschema.Schema{Properties: jsonschema.NewProperties(), Required: []string{"conventions"}}
		here := &jsonschema.Schema{Required: []string{"fieldManager", "labels", "hash"}, Properties: jsonschema.NewProperties()}
		here.Properties.Set("hash", &jsonschema.Schema{AnyOf: oneOf("annotation", "label")})
		whole.Properties.Set("conventions", here)
		s.Else = whole
	},
	"sharedConventions": func(s *jsonschema.Schema) {
		property(s, "apiVersion").Const = APIVersion
		property(s, "kind").Const = ConventionsKind
	},
	"ServiceAccount": func(s *jsonschema.Schema) { property(s, "name").MaxLength = number(maxName) },
	"Watch":          func(s *jsonschema.Schema) { namespaceList(property(s, "namespaces")) },
	"TargetNamespaces": func(s *jsonschema.Schema) {
		namespaceList(property(s, "names"))
	},
	"Drift": func(s *jsonschema.Schema) {
		for _, key := range []string{"initialFields", "exclusiveFields"} {
			property(s, key).Items = &jsonschema.Schema{Type: "string", Pattern: pathPattern}
			property(s, key).UniqueItems = true
		}
	},
	"Downstream": func(s *jsonschema.Schema) { s.OneOf = oneOf("template", "templateFile") },
	"Before":     func(s *jsonschema.Schema) { s.OneOf = oneOf("template", "templateFile") },
	"Adopt": func(s *jsonschema.Schema) {
		m := property(s, "fieldManagers")
		m.MinItems, m.UniqueItems = number(1), true
		managerName(m.Items)
	},
	"Previous": func(s *jsonschema.Schema) {
		s.MinProperties = number(1)
		managerName(property(s, "fieldManager"))
	},
	"PreviousHash": func(s *jsonschema.Schema) { s.OneOf = oneOf("annotation", "label") },
	"Guard":        func(s *jsonschema.Schema) { property(s, "minimum").Minimum = "0" },
	"Confirm": func(s *jsonschema.Schema) {
		for _, key := range []string{"configMap", "key"} {
			property(s, key).MaxLength = number(maxName)
		}
	},
	"Input": func(s *jsonschema.Schema) { s.OneOf = oneOf("objectName", "fixedName") },
	"Conventions": func(s *jsonschema.Schema) {
		s.Required = nil
		managerName(property(s, "fieldManager"))
		for _, key := range []string{"labels", "annotations"} {
			property(s, key).PropertyNames = &jsonschema.Schema{Pattern: keyPattern}
		}
		property(s, "labels").MinProperties = number(1)
	},
	// Where the hash rides, the config or the conventionsFile says, and the algorithm the other.
	"Hash": func(s *jsonschema.Schema) { s.Not = &jsonschema.Schema{Required: []string{"annotation", "label"}} },
}

// maxName is the API server's limit for the names of most objects, and for the keys of a ConfigMap.
const maxName = 253

func managerName(s *jsonschema.Schema) { s.MinLength, s.MaxLength = number(1), number(maxManager) }

func namespaceList(s *jsonschema.Schema) {
	s.MinItems, s.UniqueItems = number(1), true
	s.Items = &jsonschema.Schema{Type: "string", Pattern: dnsLabelPattern}
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
