package source

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// maxDepth bounds how deep a JSON value may be nested.
const maxDepth = 100

// fromJSON reads one JSON value. Integers of 64 bits stay integers; a larger number, or one with a fraction, is a
// float64. Nulls in maps are left out.
func fromJSON(text string) (any, error) {
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.UseNumber()
	var value any
	var syntax *json.SyntaxError
	if err := d.Decode(&value); errors.As(err, &syntax) { // which quotes what is wrong
		return nil, fmt.Errorf("it is not JSON: it is wrong at byte %d", syntax.Offset)
	} else if err != nil {
		return nil, fmt.Errorf("it is not JSON: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("it is not one JSON value")
	}
	return numbered(value, 0)
}

// numbered gives the numbers of a value their types.
func numbered(value any, depth int) (any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("it is nested deeper than %d", maxDepth)
	}
	switch v := value.(type) {
	case json.Number:
		if i, err := v.Int64(); err == nil && !strings.ContainsAny(v.String(), ".eE") {
			return i, nil
		}
		f, err := v.Float64()
		if err != nil {
			return nil, errors.New("a number in it is too large")
		}
		return f, nil
	case []any:
		for i, item := range v {
			converted, err := numbered(item, depth+1)
			if err != nil {
				return nil, err
			}
			v[i] = converted
		}
	case map[string]any:
		for key, item := range v {
			converted, err := numbered(item, depth+1)
			switch {
			case err != nil:
				return nil, err
			case converted == nil:
				delete(v, key)
			default:
				v[key] = converted
			}
		}
	}
	return value, nil
}
