package cases

import (
	"maps"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/redact"
)

// Difference is one part of an expectation that was not met.
type Difference struct {
	// Line is the line of the part in the file, Path its path, such as expect.finalizer.
	Line int
	Path string
	// Lines are a unified diff, each with its line end: - is expected, + is the result.
	Lines []string
}

// differences compares the expectation with the result, part by part.
func (c *testCase) differences(got map[string]any, w treeWriter) ([]Difference, error) {
	var list []Difference
	_, node := child(c.root, "expect")
	expect := section{nil, node, c.expect, "expect"}
	if node == nil {
		expect.node = c.root
	}
	compare := func(s section, path []string, want, have map[string]any) error {
		key := path[len(path)-1]
		wanted, isWanted := want[key]
		actual, isThere := have[key]
		if isWanted == isThere && equal(wanted, actual) {
			return nil
		}
		wanted, actual = w.maskedPair(path, wanted, actual)
		before, err := w.optional(path, wanted, isWanted)
		if err != nil {
			return err
		}
		after, err := w.optional(path, actual, isThere)
		if err != nil {
			return err
		}
		list = append(list, Difference{s.lineOf(key), strings.Join(path, "."), unified(before, after)})
		return nil
	}
	for _, key := range keysInOrder(both(c.expect, got), expectKeys) {
		wanted, _ := c.expect[key].(map[string]any)
		actual, _ := got[key].(map[string]any)
		if key != "downstreams" || len(wanted) == 0 || len(actual) == 0 {
			err := compare(expect, []string{"expect", key}, c.expect, got)
			if err != nil || key == "errors" && len(list) > 0 && w.downstreams == nil {
				return list, err // with errors in the config there is no other result
			}
			continue
		}
		for _, name := range keysInOrder(both(wanted, actual), w.downstreams) {
			if err := compare(expect.section(key), []string{"expect", key, name}, wanted, actual); err != nil {
				return nil, err
			}
		}
	}
	return list, nil
}

// maskedPair returns the expected and the actual value at a path, without values of Secrets.
func (w treeWriter) maskedPair(path []string, wanted, actual any) (any, any) {
	a, _ := wanted.(map[string]any)
	b, _ := actual.(map[string]any)
	switch {
	case path[1] == "downstreams" && len(path) == 2:
		a, b = maps.Clone(a), maps.Clone(b)
		for name := range both(a, b) {
			before, after := w.maskedPair(append(path[:2:2], name), a[name], b[name])
			setIn(a, name, before)
			setIn(b, name, after)
		}
	case path[1] == "downstreams" && w.words[path[2]] != nil:
		a, b = w.maskedDocuments(w.words[path[2]], a, b)
	case path[1] == "before" && w.words[operator.BeforeName] != nil:
		a, b = w.maskedDocuments(w.words[operator.BeforeName], a, b)
	default:
		return wanted, actual
	}
	return a, b
}

// setIn sets an existing key.
func setIn(m map[string]any, key string, value any) {
	if _, ok := m[key]; ok {
		m[key] = value
	}
}

// maskedDocuments masks the documents, or some fields of them, in two parts of a result.
func (w treeWriter) maskedDocuments(words redact.Words, a, b map[string]any) (map[string]any, map[string]any) {
	a, b = maps.Clone(a), maps.Clone(b)
	before, _ := a["objects"].(map[string]any)
	after, _ := b["objects"].(map[string]any)
	if before, after = maps.Clone(before), maps.Clone(after); len(before)+len(after) > 0 {
		for name := range both(before, after) {
			x, _ := before[name].(map[string]any)
			y, _ := after[name].(map[string]any)
			x, y = w.maskedDocuments(words, x, y)
			setIn(before, name, x)
			setIn(after, name, y)
		}
		setIn(a, "objects", before)
		setIn(b, "objects", after)
	}
	for _, key := range []string{"document", "fields"} {
		before, after := words.Pair(a[key], b[key])
		setIn(a, key, before)
		setIn(b, key, after)
	}
	return a, b
}

func both(a, b map[string]any) map[string]any {
	all := make(map[string]any, len(a)+len(b))
	for _, m := range []map[string]any{a, b} {
		for key := range m {
			all[key] = nil
		}
	}
	return all
}

// optional returns entry, or nothing for a missing value.
func (w treeWriter) optional(path []string, value any, there bool) (string, error) {
	if !there {
		return "", nil
	}
	return w.writeEntry(path, value)
}

// unified returns the changed lines of two texts with three lines of context, and ... for the rest.
func unified(before, after string) []string {
	text := diff.Diff("", []byte(before), "", []byte(after))
	lines := slices.Collect(strings.Lines(string(text)))
	lines = lines[min(3, len(lines)):] // the file names
	var out []string
	for i, line := range lines {
		switch {
		case !strings.HasPrefix(line, "@@"):
			out = append(out, line)
		case i > 0 || !strings.HasPrefix(line, "@@ -1,") && !strings.HasPrefix(line, "@@ -0,"):
			out = append(out, " ...\n")
		}
	}
	return out
}
