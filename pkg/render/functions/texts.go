package functions

import (
	"fmt"
	"reflect"
	"sort"
	"strings"
	"text/template"

	"github.com/corollary-dev/corollary/pkg/render/values"
)

// texts returns the texts of scalars, and their total length. A map or list is an error, because Go would print
// map[k:v].
func texts(b *values.Budget, scalars []any) (list []string, length int, err error) {
	if err := b.Items(len(scalars), 24); err != nil {
		return nil, 0, err
	}
	list = make([]string, len(scalars))
	for i, v := range scalars {
		if list[i], err = values.Text(b, v); err != nil {
			return nil, 0, err
		}
		length = values.Plus(length, len(list[i]))
	}
	return list, length, nil
}

// joined takes what it makes, and joins texts of this total length.
func joined(b *values.Budget, list []string, length int, sep string) (string, error) {
	if err := b.Text(values.Plus(length, values.Times(len(list), len(sep)))); err != nil {
		return "", err
	}
	return strings.Join(list, sep), nil
}

func noStructure(args []any) error {
	for _, v := range args {
		if values.IsStructure(v) {
			return values.Problemf("write `| toJson`, or `join` for a list", "%s cannot be used inside text", values.TypeName(v))
		}
	}
	return nil
}

// printed returns the most bytes of a scalar in text form.
func printed(v any) int {
	const number = 400
	if r := reflect.ValueOf(v); r.Kind() == reflect.String {
		return r.Len()
	}
	return number
}

// printing returns a function of text/template that prints its arguments, with up to perByte bytes for each byte.
func printing(perByte int, show func(...any) string) func(*values.Budget, ...any) (string, error) {
	return func(b *values.Budget, args ...any) (string, error) {
		if err := noStructure(args); err != nil {
			return "", err
		}
		length := len(args)
		for _, v := range args {
			length = values.Plus(length, printed(v))
		}
		if err := b.Text(values.Times(2*perByte, length)); err != nil {
			return "", err
		}
		return show(args...), nil
	}
}

var (
	sprint   = printing(1, fmt.Sprint)
	urlquery = printing(3, template.URLQueryEscaper)
)

func toString(b *values.Budget, v any) (string, error) {
	if raw, ok := v.([]byte); ok {
		return string(raw), b.Text(len(raw))
	}
	return values.Text(b, v)
}

func toStrings(b *values.Budget, v any) ([]string, error) {
	list := reflect.ValueOf(v)
	if list.Kind() != reflect.Slice && list.Kind() != reflect.Array {
		text, err := toString(b, v)
		return []string{text}, err
	}
	items, err := presentItems(b, list)
	if err != nil {
		return nil, err
	}
	found, _, err := texts(b, items)
	return found, err
}

// presentItems returns the items of a list that are not null.
func presentItems(b *values.Budget, list reflect.Value) ([]any, error) {
	if err := b.Items(list.Len(), 3*24); err != nil {
		return nil, err
	}
	var items []any
	for i := range list.Len() {
		if item := list.Index(i).Interface(); item != nil {
			items = append(items, item)
		}
	}
	return items, nil
}

// sortAlpha sorts a copy; sprig sorts a list of strings in place.
func sortAlpha(b *values.Budget, list any) ([]string, error) {
	if values.IsStructure(list) && values.TypeName(list) == "a map" {
		return nil, values.Problemf("", "sortAlpha takes a list, not a map")
	}
	found, err := toStrings(b, list)
	if err != nil {
		return nil, err
	}
	length := 0
	for _, text := range found {
		length = values.Plus(length, len(text))
	}
	if err := b.Sort(len(found), length); err != nil {
		return nil, err
	}
	sort.Strings(found)
	return found, nil
}

func quote(b *values.Budget, scalars ...any) (string, error) {
	list, _, err := texts(b, scalars)
	if err != nil {
		return "", err
	}
	for i, text := range list {
		if list[i], err = values.Quoted(b, text); err != nil {
			return "", err
		}
	}
	return strings.Join(list, " "), nil
}

func squote(b *values.Budget, scalars ...any) (string, error) {
	list, length, err := texts(b, scalars)
	if err != nil {
		return "", err
	}
	if err := b.Text(values.Plus(2*length, 6*len(list))); err != nil {
		return "", err
	}
	for i, text := range list {
		list[i] = "'" + text + "'"
	}
	return strings.Join(list, " "), nil
}

func join(b *values.Budget, sep string, list any) (string, error) {
	v := reflect.ValueOf(list)
	if v.Kind() != reflect.Slice && v.Kind() != reflect.Array {
		return toString(b, list)
	}
	items, err := presentItems(b, v)
	if err != nil {
		return "", err
	}
	found, length, err := texts(b, items)
	if err != nil {
		return "", err
	}
	return joined(b, found, length, sep)
}
