package rules

import (
	"encoding/base64"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	apiservercel "k8s.io/apiserver/pkg/cel"

	"github.com/google/cel-go/common/ast"

	"github.com/corollary-dev/corollary/pkg/rules/schema"
)

// toJSON returns a result as a JSON value that shares no memory with the input.
func toJSON(val ref.Val) (any, error) {
	switch v := val.(type) {
	case types.Null:
		return nil, nil
	case types.Bool:
		return bool(v), nil
	case types.String:
		return string(v), nil
	case types.Int:
		return int64(v), nil
	case types.Uint:
		return uintToJSON(v)
	case types.Double:
		return doubleToJSON(v)
	case types.Bytes:
		return base64.StdEncoding.EncodeToString(v), nil
	case types.Timestamp:
		return v.UTC().Format(time.RFC3339Nano), nil
	case types.Duration:
		return v.Duration.String(), nil
	case *types.Optional:
		if !v.HasValue() {
			return nil, nil
		}
		return toJSON(v.GetValue())
	case traits.Mapper:
		return mapToJSON(v)
	case traits.Lister:
		return listToJSON(v)
	}
	if text, ok := kubernetesText(val); ok {
		return text, nil
	}
	return nil, fmt.Errorf("the result is %s, which is not a JSON value", article(typeOf(val)))
}

func uintToJSON(v types.Uint) (any, error) {
	if v > math.MaxInt64 {
		return nil, fmt.Errorf("the result %d is too large for an integer of JSON in Kubernetes", v)
	}
	return int64(v), nil
}

func doubleToJSON(v types.Double) (any, error) {
	if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
		return nil, fmt.Errorf("the result %v is not a JSON number", float64(v))
	}
	return float64(v), nil
}

// kubernetesText returns the text of a value of one of Kubernetes' own types.
func kubernetesText(val ref.Val) (string, bool) {
	switch v := val.(type) {
	case apiservercel.Quantity:
		return v.Quantity.String(), true
	case apiservercel.IP:
		return v.Addr.String(), true
	case apiservercel.CIDR:
		return v.Prefix.String(), true
	case apiservercel.URL:
		return v.URL.String(), true
	case apiservercel.Semver:
		return v.Version.String(), true
	}
	return "", false
}

func mapToJSON(m traits.Mapper) (any, error) {
	if known, ok := schema.Members(m); ok {
		return copyJSON(known), nil
	}
	members := map[string]any{}
	for it := m.Iterator(); it.HasNext() == types.True; {
		key := it.Next()
		name, ok := key.(types.String)
		if !ok {
			return nil, fmt.Errorf("the result has a key that is %s: keys of JSON are strings", article(typeOf(key)))
		}
		member, err := toJSON(m.Get(key))
		if err != nil {
			return nil, err
		}
		members[string(name)] = member
	}
	return members, nil
}

// copyJSON returns a deep copy of a value. Numbers of the config may have types that objects do not have.
func copyJSON(v any) any {
	switch v := v.(type) {
	case map[string]any:
		members := make(map[string]any, len(v))
		for name, member := range v {
			members[name] = copyJSON(member)
		}
		return members
	case []any:
		items := make([]any, len(v))
		for i, item := range v {
			items[i] = copyJSON(item)
		}
		return items
	case int:
		return int64(v)
	}
	return v
}

func listToJSON(l traits.Lister) (any, error) {
	items := []any{}
	for it := l.Iterator(); it.HasNext() == types.True; {
		item, err := toJSON(it.Next())
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	return items, nil
}

// typeOf returns the name of the type of a value.
func typeOf(val ref.Val) string {
	if t, ok := val.Type().(*cel.Type); ok {
		return typeText(t)
	}
	return val.Type().TypeName()
}

// typeText returns the name of a type for messages.
func typeText(t *cel.Type) string {
	switch {
	case IsOptional(t):
		return "optional " + typeText(t.Parameters()[0])
	case t.IsExactType(types.NullType):
		return "null"
	}
	return cel.FormatCELType(t) // names of object types begin with schema.TypePrefix, which is readable
}

// IsOptional reports whether a type is an optional.
func IsOptional(t *cel.Type) bool {
	return t.Kind() == types.OpaqueKind && t.TypeName() == types.OptionalType.TypeName()
}

// article adds "a" or "an" to a noun.
func article(noun string) string {
	if strings.ContainsRune("aeio", rune(noun[0])) {
		return "an " + noun
	}
	return "a " + noun
}

// IsText reports whether an expression is a string.
func IsText(e ast.Expr) bool {
	if e.Kind() != ast.LiteralKind {
		return false
	}
	_, ok := e.AsLiteral().Value().(string)
	return ok
}
