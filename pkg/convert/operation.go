package convert

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/rules"
)

// pass is one conversion of one object.
type pass struct {
	ctx    context.Context //nolint:containedctx // a pass lives as long as the call
	budget *rules.Budget
	source *kinds.Version
	whole  map[string]any // the object, as it is while operations read
	eval   evaluation     // nil: programs are evaluated
}

// evaluation is what takes the place of the result of a program.
type evaluation func(program *rules.Program, obj map[string]any) any

// isPartial reports whether the object lacks what each stored one has: what its version requires, or a default. A
// server-side apply has the API server convert what is left of an object without the fields of one manager.
func (p *pass) isPartial() bool {
	whole := runtime.DeepCopyJSON(p.whole)
	p.source.Coerce(whole)
	return !reflect.DeepEqual(whole, p.whole) || len(p.source.Validate(p.ctx, whole)) > 0
}

// operation is one step of one direction. All operations of a direction read before the first one writes, so that each
// sees the object as it was, without a copy of it.
type operation interface {
	// read returns what is to be written; ok is false where there is nothing.
	read(obj map[string]any, p *pass) (value any, ok bool, err error)
	// clear removes what is not at its old place any more.
	clear(obj map[string]any)
	// write puts a value that read returned to its new place. Without one it is not called.
	write(obj map[string]any, value any, p *pass) error
}

// carryOut applies operations to an object, in place.
func carryOut(operations []operation, obj map[string]any, p *pass) error {
	p.whole = obj
	values, err := readAll(operations, obj, p)
	if err != nil {
		return err
	}
	return writeAll(operations, obj, values, p)
}

// result is what an operation has read; found is false where there is nothing to write.
type result struct {
	value any
	found bool
}

func readAll(operations []operation, obj map[string]any, p *pass) ([]result, error) {
	results := make([]result, len(operations))
	for i, o := range operations {
		var err error
		if results[i].value, results[i].found, err = o.read(obj, p); err != nil {
			return nil, err
		}
	}
	return results, nil
}

func writeAll(operations []operation, obj map[string]any, results []result, p *pass) error {
	for _, o := range operations {
		o.clear(obj)
	}
	for i, o := range operations {
		if results[i].found {
			if err := o.write(obj, results[i].value, p); err != nil {
				return err
			}
		}
	}
	return nil
}

// transfer takes a value from one place to another, which may be the same, and changes it on the way.
type transfer struct {
	from, to fieldpath.Path
	change   func(any) (value any, ok bool) // nil: it stays as it is
}

func (t *transfer) read(obj map[string]any, _ *pass) (any, bool, error) {
	value, ok := fieldpath.Get(obj, t.from)
	if ok && t.change != nil {
		value, ok = t.change(value)
	}
	return value, ok, nil
}

func (t *transfer) clear(obj map[string]any) { fieldpath.Remove(obj, t.from) }

func (t *transfer) write(obj map[string]any, value any, _ *pass) error {
	return fieldpath.Set(obj, t.to, value)
}

// wrapped makes a list of one item of a value.
func wrapped(value any) (any, bool) {
	if value == nil {
		return nil, true
	}
	return []any{value}, true
}

// unwrapped is the first item of a list.
func unwrapped(value any) (any, bool) {
	list, ok := value.([]any)
	if !ok {
		return value, true // null
	}
	if len(list) == 0 {
		return nil, false
	}
	return list[0], true
}

// renamed maps strings; others stay.
func renamed(values map[string]string) func(any) (any, bool) {
	return func(value any) (any, bool) {
		if text, ok := value.(string); ok {
			if to, ok := values[text]; ok {
				return to, true
			}
		}
		return value, true
	}
}

// constant gives a field a value where it has none.
type constant struct {
	at    fieldpath.Path
	value any
}

func (c *constant) read(obj map[string]any, _ *pass) (any, bool, error) {
	return c.value, true, nil
}

func (c *constant) clear(map[string]any) {}

func (c *constant) write(obj map[string]any, value any, _ *pass) error {
	if _, ok := fieldpath.Get(obj, c.at); ok {
		return nil
	}
	return fieldpath.Set(obj, c.at, runtime.DeepCopyJSONValue(value))
}

// removal removes a field.
type removal struct{ at fieldpath.Path }

func (r *removal) read(map[string]any, *pass) (any, bool, error) { return nil, true, nil }

func (r *removal) clear(map[string]any) {}

func (r *removal) write(obj map[string]any, _ any, _ *pass) error {
	fieldpath.Remove(obj, r.at)
	return nil
}

// computed sets a field to the result of an expression.
type computed struct {
	at      fieldpath.Path
	program *rules.Program
	where   string // in the config
}

func (c *computed) read(obj map[string]any, p *pass) (any, bool, error) {
	if p.eval != nil {
		return p.eval(c.program, obj), true, nil
	}
	value, err := c.program.Eval(rules.Vars{Self: obj}, p.budget)
	if failure := (*rules.EvalError)(nil); errors.As(err, &failure) && failure.LacksField() && p.isPartial() {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("set %s: %w", c.at, err)
	}
	return runtime.DeepCopyJSONValue(value), true, nil
}

func (c *computed) clear(map[string]any) {}

func (c *computed) write(obj map[string]any, value any, _ *pass) error {
	return fieldpath.Set(obj, c.at, value)
}

// each applies operations to the items of a list or of a map.
type each struct {
	transfer
	operations []operation
	source     *structuralschema.Structural // of the list or map
}

// eachRead is what each has read: the list or map, and for each object in it what the operations have read.
type eachRead struct {
	items any
	read  []itemRead
}

type itemRead struct {
	key     any // an index, or the key of a map
	object  map[string]any
	results []result
}

func (e *each) read(obj map[string]any, p *pass) (any, bool, error) {
	value, ok, err := e.transfer.read(obj, p)
	if !ok || err != nil {
		return nil, ok, err
	}
	read := objectsIn(value)
	for i := range read {
		if read[i].results, err = readAll(e.operations, read[i].object, p); err != nil {
			return nil, false, fmt.Errorf("%s[%v]: %w", e.from, read[i].key, err)
		}
	}
	return eachRead{value, read}, true, nil
}

// objectsIn lists the objects in a list or a map.
func objectsIn(value any) []itemRead {
	var found []itemRead
	switch items := value.(type) {
	case []any:
		for i := range items {
			if item, ok := items[i].(map[string]any); ok {
				found = append(found, itemRead{key: i, object: item})
			}
		}
	case map[string]any:
		for key := range items {
			if item, ok := items[key].(map[string]any); ok {
				found = append(found, itemRead{key: key, object: item})
			}
		}
	}
	return found
}

func (e *each) write(obj map[string]any, value any, p *pass) error {
	all, _ := value.(eachRead)
	for _, item := range all.read {
		if err := writeAll(e.operations, item.object, item.results, p); err != nil {
			return fmt.Errorf("%s[%v]: %w", e.from, item.key, err)
		}
	}
	return e.transfer.write(obj, all.items, p)
}
