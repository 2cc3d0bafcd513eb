//go:build controlplane

package memcluster_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// masks replaces values that servers choose by the same names: the first uid in a row is uid1 for both servers.
type masks struct {
	names  map[string]string
	counts map[string]int
}

func newMasks() *masks { return &masks{names: map[string]string{}, counts: map[string]int{}} }

func (m *masks) clone() *masks {
	return &masks{names: maps.Clone(m.names), counts: maps.Clone(m.counts)}
}

func (m *masks) name(kind, value string) string {
	if value == "" || value == "0" {
		return value
	}
	if m.names[value] == "" {
		m.counts[kind]++
		m.names[value] = fmt.Sprintf("%s%d", kind, m.counts[kind])
	}
	return m.names[value]
}

var uuid = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// text masks the values in a message.
func (m *masks) text(text string) string {
	text = uuid.ReplaceAllStringFunc(text, func(found string) string { return m.name("uid", found) })
	for value, name := range m.names {
		if strings.HasPrefix(name, "generated") {
			text = strings.ReplaceAll(text, value, name)
		}
	}
	if age.MatchString(text) {
		return "AGE"
	}
	return timestamps.ReplaceAllString(versions.ReplaceAllString(text, "${1}VERSION"), "TIME")
}

var (
	versions   = regexp.MustCompile(`((?:ersion in \w+ \(|ersion: |current: |\()"?)\d+`)
	age        = regexp.MustCompile(`^\d+s$`) // in a cell of a table
	timestamps = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)
)

// mask masks a response.
func (m *masks) mask(v any) any {
	switch v := v.(type) {
	case map[string]any:
		return m.object(v)
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = m.mask(item)
		}
		return out
	case string:
		return m.text(v)
	}
	return v
}

func (m *masks) object(v map[string]any) map[string]any {
	out := make(map[string]any, len(v))
	if name, ok := v["name"].(string); ok && v["generateName"] != nil {
		m.name("generated", name)
	}
	_, isList := v["items"]
	for _, key := range slices.Sorted(maps.Keys(v)) {
		value := v[key]
		text, isText := value.(string)
		switch {
		case key == "resourceVersion" && isText && v["uid"] == nil: // of a list or a bookmark
			out[key] = "ANY"
		case key == "resourceVersion" && isText:
			out[key] = m.name("version", text)
		case key == "continue" && isText && text != "":
			out[key] = "NEXT"
		case isList && key == "metadata":
			out[key] = m.mask(value)
		case key == "causes", key == "managedFields": // managers are sorted by the second of their write
			out[key] = sorted(m.mask(value))
		default:
			out[m.text(key)] = m.mask(value)
		}
	}
	if causes, ok := out["details"].(map[string]any); ok && isSeveral(causes["causes"]) {
		out["message"] = "SEVERAL" // their order is random
	}
	return out
}

func isSeveral(v any) bool {
	list, _ := v.([]any)
	return len(list) > 1
}

func sorted(v any) any {
	list, _ := v.([]any)
	slices.SortFunc(list, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	return list
}

// withoutMessages removes messages before the comparison.
func withoutMessages(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, value := range v {
			if key != "message" {
				out[key] = withoutMessages(value)
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = withoutMessages(item)
		}
		return out
	}
	return v
}
