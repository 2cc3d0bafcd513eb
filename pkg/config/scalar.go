package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"

	yaml "go.yaml.in/yaml/v3"
	kyaml "sigs.k8s.io/yaml"
)

// scalarValue returns what kubectl reads for a scalar. YAML 1.1 and 1.2 differ in what on, 0o14 or 2026-11-20
// are, and so do the parsers; so a plain scalar is given to kubectl's own. Only integers beyond 2^53 differ:
// they stay what they are. The error tells of a value without a JSON form, such as .nan.
func scalarValue(n *yaml.Node) (any, error) {
	tagged := n.Style&yaml.TaggedStyle != 0
	plain := n.Style&^yaml.FlowStyle == 0
	switch {
	case tagged:
		quoted, err := json.Marshal(n.Value)
		if err != nil {
			return nil, err
		}
		return read("v: " + n.ShortTag() + " " + string(quoted))
	case !plain || strings.ContainsAny(n.Value, "\n\u0085\u2028\u2029"):
		return n.Value, nil
	}
	v, err := read("v: " + n.Value)
	var unsupported *json.UnsupportedValueError
	if errors.As(err, &unsupported) {
		return nil, err
	}
	if err != nil {
		// Plain in its place, yet not on its own; it is text then, for no number or boolean looks so.
		return n.Value, nil //nolint:nilerr // that YAML cannot read it is the answer, not a failure
	}
	switch v.(type) {
	case map[string]any, []any:
		return n.Value, nil
	}
	return v, nil
}

// read returns the value of key v in a one-line document.
func read(text string) (any, error) {
	doc, err := readMap(text)
	if err != nil {
		return nil, err
	}
	return doc["v"], nil
}

func readMap(text string) (map[string]any, error) {
	j, err := kyaml.YAMLToJSON([]byte(text))
	if err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(j))
	dec.UseNumber()
	var doc map[string]any
	if err := dec.Decode(&doc); err != nil {
		return nil, err
	}
	v, err := numbers(doc)
	if err != nil {
		return nil, err
	}
	m, _ := v.(map[string]any)
	return m, nil
}

// numbers replaces json.Number by int64 where the value is one, else float64, in place.
func numbers(v any) (any, error) {
	var err error
	switch v := v.(type) {
	case json.Number:
		if i, err := v.Int64(); err == nil {
			return i, nil
		}
		return v.Float64()
	case map[string]any:
		for k := range v {
			if v[k], err = numbers(v[k]); err != nil {
				return nil, err
			}
		}
	case []any:
		for i := range v {
			if v[i], err = numbers(v[i]); err != nil {
				return nil, err
			}
		}
	}
	return v, nil
}

var errNoKey = errors.New("no key")

// keyText returns the text that kubectl makes of a scalar key: "1" of 1, "true" of on.
func keyText(n *yaml.Node) (string, error) {
	key := n.Value
	if n.Style&yaml.TaggedStyle != 0 {
		quoted, err := json.Marshal(n.Value)
		if err != nil {
			return "", err
		}
		key = n.ShortTag() + " " + string(quoted)
	} else if n.Style&^yaml.FlowStyle != 0 || strings.ContainsAny(n.Value, "\n\u0085\u2028\u2029") {
		return n.Value, nil
	}
	m, err := readMap(key + ": 0")
	if err != nil {
		return "", err
	}
	if len(m) != 1 {
		return "", errNoKey
	}
	for k := range m {
		return k, nil
	}
	return "", errNoKey
}
