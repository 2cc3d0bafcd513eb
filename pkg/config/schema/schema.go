package schema

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"reflect"
	"strings"
	"sync"

	"github.com/invopop/jsonschema"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/config/common"
	"github.com/corollary-dev/corollary/pkg/config/conversion"
	"github.com/corollary-dev/corollary/pkg/config/forms"
	"github.com/corollary-dev/corollary/pkg/config/lock"
	"github.com/corollary-dev/corollary/pkg/config/staged"
)

// Operator returns the JSON Schema (draft 2020-12) of an operator's file, made from the same types that Load decodes
// into. It holds what a single field can be: names, types, allowed values, patterns. What fields demand of one
// another, and of other operators, only Load knows.
func Operator() []byte { return operatorSchema() }

// Conventions returns the same of a file of kind Conventions.
func Conventions() []byte { return conventionsSchema() }

// Activation returns the same of a file of kind Activation.
func Activation() []byte { return activationSchema() }

// Conversion returns the same of a file of kind Conversion.
func Conversion() []byte { return conversionSchema() }

var (
	operatorSchema   = sync.OnceValue(func() []byte { return schemaText("Corollary operator", &config.Operator{}) })
	activationSchema = sync.OnceValue(func() []byte { return schemaText("Corollary activation", &lock.Activation{}) })
	conversionSchema = sync.OnceValue(func() []byte {
		return schemaText("Corollary conversion", &conversion.ConversionDocument{})
	})
	conventionsSchema = sync.OnceValue(func() []byte {
		return schemaText("Corollary conventions", &config.SharedConventions{})
	})
)

func schemaText(title string, file any) []byte {
	text, err := json.MarshalIndent(buildSchema(title, file), "", "  ")
	if err != nil {
		panic("writing the JSON Schema: " + err.Error()) // of types that are compiled in: cannot happen
	}
	return append(text, '\n')
}

// buildSchema makes the schema of a kind of file from the type that it is decoded into.
func buildSchema(title string, file any) *jsonschema.Schema {
	comments := docComments()
	r := &jsonschema.Reflector{
		Anonymous:      true, // the schema is addressed by where it is published, not by a name of its own
		ExpandedStruct: true,
		Mapper:         mapType,
		LookupComment: func(t reflect.Type, field string) string {
			return comments[strings.TrimSuffix(t.Name()+"."+field, ".")]
		},
	}
	root := r.Reflect(file)
	root.Title = title
	constrain(reflect.TypeOf(file).Elem(), root)
	for name, t := range structsIn(reflect.TypeOf(file).Elem(), map[string]reflect.Type{}) {
		if def, ok := root.Definitions[name]; ok {
			constrain(t, def)
		}
	}
	return root
}

// structsIn adds to known, by their names, the struct types that t's fields have.
func structsIn(t reflect.Type, known map[string]reflect.Type) map[string]reflect.Type {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice:
		structsIn(t.Elem(), known)
	case reflect.Struct:
		if known[t.Name()] != nil {
			return known // a type that holds itself
		}
		known[t.Name()] = t
		for i := range t.NumField() {
			structsIn(t.Field(i).Type, known)
		}
	}
	return known
}

// docComments returns the comments of types and fields, as TYPE and TYPE.Field, on one line each.
func docComments() map[string]string {
	out := map[string]string{}
	err := fs.WalkDir(config.TypesSource, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		source, err := config.TypesSource.ReadFile(name)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, source, parser.ParseComments)
		if err == nil {
			collectComments(file, out)
		}
		return err
	})
	if err != nil {
		panic("reading the doc comments of the config types: " + err.Error()) // they are embedded and compiled: cannot happen
	}
	return out
}

func collectComments(file *ast.File, out map[string]string) {
	for _, decl := range file.Decls {
		gen, ok := decl.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range gen.Specs {
			ts, ok := spec.(*ast.TypeSpec)
			if !ok {
				continue
			}
			out[ts.Name.Name] = oneLine(gen.Doc)
			if st, ok := ts.Type.(*ast.StructType); ok {
				for _, f := range st.Fields.List {
					for _, n := range f.Names {
						out[ts.Name.Name+"."+n.Name] = oneLine(f.Doc)
					}
				}
			}
		}
	}
}

func oneLine(c *ast.CommentGroup) string { return strings.Join(strings.Fields(c.Text()), " ") }

// mapType gives the schema of types that are not what they seem in Go.
func mapType(t reflect.Type) *jsonschema.Schema {
	switch {
	case t == reflect.TypeFor[common.Duration]():
		return &jsonschema.Schema{Type: "string", Pattern: durationPattern}
	case t == reflect.TypeFor[staged.Step]():
		return &jsonschema.Schema{OneOf: []*jsonschema.Schema{{Type: "integer", Minimum: "1"},
			{Type: "string", Pattern: forms.StepPattern}}}
	case t == reflect.TypeFor[metav1.LabelSelector]():
		return labelSelector()
	case config.EnumTypes[t] != nil:
		return &jsonschema.Schema{Type: "string", Enum: anys(config.EnumTypes[t])}
	}
	return nil
}

// durationPattern is what time.ParseDuration reads, without signs.
const durationPattern = `^(0|([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|ms|s|m|h))+$`

func labelSelector() *jsonschema.Schema {
	text := &jsonschema.Schema{Type: "string"}
	expression := object(
		"key", text,
		"operator", &jsonschema.Schema{Type: "string", Enum: []any{"In", "NotIn", "Exists", "DoesNotExist"}},
		"values", &jsonschema.Schema{Type: "array", Items: text},
	)
	expression.Required = []string{"key", "operator"}
	return object(
		"matchLabels", &jsonschema.Schema{Type: "object", AdditionalProperties: text},
		"matchExpressions", &jsonschema.Schema{Type: "array", Items: expression},
	)
}

// object returns the schema of a map with these keys and no others; pairs are key, *Schema, key, *Schema, …
func object(pairs ...any) *jsonschema.Schema {
	s := &jsonschema.Schema{Type: "object", Properties: jsonschema.NewProperties(),
		AdditionalProperties: jsonschema.FalseSchema}
	for i := 0; i+1 < len(pairs); i += 2 {
		key, _ := pairs[i].(string)
		value, _ := pairs[i+1].(*jsonschema.Schema)
		s.Properties.Set(key, value)
	}
	return s
}

func anys(values []string) []any {
	out := make([]any, len(values))
	for i, v := range values {
		out[i] = v
	}
	return out
}
