package functions

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"sort"
	"strings"

	"github.com/corollary-dev/corollary/pkg/render/values"
)

// dict makes a map of keys and values.
func dict(b *values.Budget, args ...any) (map[string]any, error) {
	if err := b.Spend(values.MapBytes(len(args) / 2)); err != nil {
		return nil, err
	}
	out := make(map[string]any, len(args)/2)
	for i := 0; i < len(args); i += 2 {
		key, err := values.Text(b, args[i])
		if err != nil {
			return nil, err
		}
		out[key] = ""
		if i+1 < len(args) {
			out[key] = args[i+1]
		}
	}
	return out, nil
}

// sorting takes the sorting of the keys of maps.
func sorting(b *values.Budget, all ...map[string]any) error {
	n, length := 0, 0
	for _, m := range all {
		if err := b.Work(len(m) / 32); err != nil {
			return err
		}
		n += len(m)
		for key := range m {
			length += len(key)
		}
	}
	return b.Sort(2*n, length)
}

// keys returns the sorted keys of all maps: Go's order is random.
func keys(b *values.Budget, all ...map[string]any) ([]string, error) {
	if err := sorting(b, all...); err != nil {
		return nil, err
	}
	out := []string{}
	for _, m := range all {
		out = append(out, values.SortedKeys(m)...)
	}
	sort.Strings(out)
	return out, nil
}

// mapValues returns the values of a map in the order of its keys.
func mapValues(b *values.Budget, m map[string]any) ([]any, error) {
	if err := sorting(b, m); err != nil {
		return nil, err
	}
	out := []any{}
	for _, key := range values.SortedKeys(m) {
		out = append(out, m[key])
	}
	return out, nil
}

// setKey returns a copy of m with one key changed. sprig changes m itself, which could be an object in a cache.
func setKey(b *values.Budget, m map[string]any, key string, value any) (map[string]any, error) {
	out, err := shallowCopy(b, m)
	if err != nil {
		return nil, err
	}
	out[key] = value
	return out, nil
}

func unset(b *values.Budget, m map[string]any, key string) (map[string]any, error) {
	out, err := shallowCopy(b, m)
	if err != nil {
		return nil, err
	}
	delete(out, key)
	return out, nil
}

func shallowCopy(b *values.Budget, m map[string]any) (map[string]any, error) {
	if err := b.Work(len(m) / 16); err != nil {
		return nil, err
	}
	if err := b.Spend(values.MapBytes(len(m) + 1)); err != nil {
		return nil, err
	}
	out := make(map[string]any, len(m)+1)
	maps.Copy(out, m)
	return out, nil
}

// merging returns one of sprig's merges, of copies: it changes its first map and shares parts of the others with it.
func merging(name string) func(*values.Budget, map[string]any, ...map[string]any) (any, error) {
	merge := sprigFunctions[name].(func(map[string]any, ...map[string]any) (any, error))
	return func(b *values.Budget, dst map[string]any, srcs ...map[string]any) (any, error) {
		copies := make([]map[string]any, 0, 1+len(srcs))
		for _, m := range append([]map[string]any{dst}, srcs...) {
			c, err := values.Copy(b, m)
			if err != nil {
				return nil, err
			}
			copies = append(copies, c.(map[string]any))
		}
		return merge(copies[0], copies[1:]...)
	}
}

// fromJSON parses JSON. Integers stay integers, and invalid JSON is an error; sprig returns nothing.
func fromJSON(b *values.Budget, text string) (any, error) {
	const each = 130 // bytes of a value that is parsed
	n := 1
	for _, mark := range []string{",", ":", "[", "{"} {
		n += strings.Count(text, mark)
	}
	if err := b.Text(values.Plus(2*len(text), values.Times(n, each))); err != nil {
		return nil, err
	}
	if err := b.Work(n / 2); err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader([]byte(text)))
	dec.UseNumber()
	var out any
	if err := dec.Decode(&out); err != nil {
		return nil, values.Problemf("", "reading JSON: %v", values.Short(fmt.Sprint(err)))
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, values.Problemf("", "reading JSON: text follows the value")
	}
	return values.Copy(b, out)
}
