package cases

import (
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
)

// Difference is one part of an expectation that did not come out.
type Difference struct {
	// Line is that of the part in the file, Path leads to it, such as expect.finalizer.
	Line int
	Path string
	// Lines are a unified diff, each with its line end: - what is expected, + what came out.
	Lines []string
}

// differences compares the expectation with what came out of it, part by part.
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
		came, isThere := have[key]
		if isWanted == isThere && same(wanted, came) {
			return nil
		}
		before, err := w.optional(path, wanted, isWanted)
		if err != nil {
			return err
		}
		after, err := w.optional(path, came, isThere)
		if err != nil {
			return err
		}
		list = append(list, Difference{s.line(key), strings.Join(path, "."), unified(before, after)})
		return nil
	}
	for _, key := range keysInOrder(both(c.expect, got), expectKeys) {
		wanted, _ := c.expect[key].(map[string]any)
		came, _ := got[key].(map[string]any)
		if key != "downstreams" || len(wanted) == 0 || len(came) == 0 {
			err := compare(expect, []string{"expect", key}, c.expect, got)
			if err != nil || key == "errors" && len(list) > 0 && w.downstreams == nil {
				return list, err // with errors in the config nothing else can come out
			}
			continue
		}
		for _, name := range keysInOrder(both(wanted, came), w.downstreams) {
			if err := compare(expect.section(key), []string{"expect", key, name}, wanted, came); err != nil {
				return nil, err
			}
		}
	}
	return list, nil
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

// optional is entry, or nothing for what is not there.
func (w treeWriter) optional(path []string, value any, there bool) (string, error) {
	if !there {
		return "", nil
	}
	return w.entry(path, value)
}

// unified returns the changed lines of two texts with three lines around them, and ... for what is left out.
func unified(before, after string) []string {
	text := diff.Diff("", []byte(before), "", []byte(after))
	lines := slices.Collect(strings.Lines(string(text)))
	lines = lines[min(3, len(lines)):] // the names of the two
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
