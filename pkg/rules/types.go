package rules

import (
	"sort"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	apiservercel "k8s.io/apiserver/pkg/cel"
)

// provider is the type provider of a scope. It remembers which type lacked a field, because CEL's error has only the
// name of the field.
type provider struct {
	*apiservercel.DeclTypeProvider

	mu     sync.Mutex
	misses map[string]string // field to the type that lacks it
}

var _ types.Provider = (*provider)(nil)

// FindStructFieldType implements types.Provider.
func (p *provider) FindStructFieldType(typeName, field string) (*types.FieldType, bool) {
	found, ok := p.DeclTypeProvider.FindStructFieldType(typeName, field)
	if !ok {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.misses == nil {
			p.misses = map[string]string{}
		}
		p.misses[field] = typeName
	}
	return found, ok
}

// forget forgets the lookups of the last expression.
func (p *provider) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.misses = nil
}

// lacking returns the type that lacks the field, and its sorted fields.
func (p *provider) lacking(field string) (typeName string, has []string) {
	p.mu.Lock()
	typeName = p.misses[field]
	p.mu.Unlock()
	if t, ok := p.FindDeclType(typeName); ok {
		for name := range t.Fields {
			has = append(has, name)
		}
	}
	sort.Strings(has)
	return typeName, has
}

// newProvider returns the provider for the declared types, and the options that install it.
func newProvider(base *cel.Env, declared []*apiservercel.DeclType) (*provider, []cel.EnvOption, error) {
	typed := apiservercel.NewDeclTypeProvider(declared...)
	typed.SetRecognizeKeywordAsFieldName(true) // metadata.namespace needs no escape
	typed, err := typed.WithTypeProvider(base.CELTypeProvider())
	if err != nil {
		return nil, nil, err
	}
	p := &provider{DeclTypeProvider: typed}
	return p, []cel.EnvOption{cel.CustomTypeProvider(p), cel.CustomTypeAdapter(typed)}, nil
}
