package cases

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/spelling"
)

// restrictToExpected returns the result, restricted to what the expectation names: the case passes if they are equal;
// else it is the new expectation. An empty expectation is replaced by the whole result.
func (c *testCase) restrictToExpected(out result) map[string]any {
	tree, brief := out.tree, out.brief()
	if len(c.expect) == 0 {
		return brief
	}
	got := map[string]any{}
	for key, want := range c.expect {
		have, there := tree[key]
		switch want := want.(type) {
		case nil:
			got[key] = have
			if key == "status" {
				got[key] = brief[key]
			}
		case map[string]any:
			put(got, key, narrowMap(key, want, have), there)
		case []any:
			put(got, key, narrowList(key, want, have), there)
			put(got, key, want, !there && len(want) == 0) // none, as expected
		default:
			put(got, key, have, there)
		}
	}
	if errs, ok := tree["errors"]; ok && got["errors"] == nil {
		got["errors"] = errs // an error is never left out
	}
	return got
}

// brief returns the result without what adds nothing: that nothing was done, and the identifiers of downstreams in the
// status.
func (out result) brief() map[string]any {
	brief := maps.Clone(out.tree)
	downstreams, _ := brief["downstreams"].(map[string]any)
	if list, _ := brief["leftovers"].([]any); len(list) == 0 && len(downstreams) > 0 {
		delete(brief, "leftovers")
	}
	if list, _ := brief["conditions"].([]any); len(list) == 0 {
		delete(brief, "conditions")
	}
	if brief["finalizer"] == "None" {
		delete(brief, "finalizer")
	}
	if rest := fieldpath.Without(brief, out.identifiers); len(rest) > 0 {
		brief = rest
	}
	return brief
}

func narrowMap(key string, want map[string]any, have any) any {
	m, _ := have.(map[string]any)
	if m == nil || len(want) == 0 {
		return have
	}
	switch key {
	case "before":
		return narrowDownstream(want, m)
	case "downstreams":
	default:
		return restrict(want, m)
	}
	out := map[string]any{}
	for name, wanted := range want {
		d, there := m[name].(map[string]any)
		w, _ := wanted.(map[string]any)
		if there && len(w) > 0 {
			out[name] = narrowDownstream(w, d)
		} else if there {
			out[name] = d
		}
	}
	return out
}

// narrowDownstream restricts a downstream to what is expected. Its document is compared as a whole, its fields one by
// one.
func narrowDownstream(want, have map[string]any) map[string]any {
	out := map[string]any{}
	for key, wanted := range want {
		fields, _ := wanted.(map[string]any)
		if key == "objects" {
			put(out, key, narrowMap("downstreams", fields, have[key]), have[key] != nil)
			continue
		}
		if key != "fields" {
			value, there := have[key]
			put(out, key, value, there || wanted == nil)
			continue
		}
		found := map[string]any{}
		for path := range fields {
			found[path] = nil
			if steps, err := fieldpath.Parse(path); err == nil {
				found[path], _ = fieldpath.Get(have["document"], steps)
			}
		}
		put(out, key, found, have["document"] != nil)
	}
	return out
}

// restrict keeps the keys of maps that want has. Lists are compared whole.
func restrict(want, have map[string]any) map[string]any {
	out := map[string]any{}
	for key, wanted := range want {
		value, there := have[key]
		w, _ := wanted.(map[string]any)
		h, _ := value.(map[string]any)
		if len(w) > 0 && h != nil {
			value = restrict(w, h)
		}
		put(out, key, value, there || wanted == nil)
	}
	return out
}

func narrowList(key string, want []any, have any) any {
	list, _ := have.([]any)
	switch key {
	case "errors", "invalid":
		return partsOf(want, list)
	case "conditions":
		return sameTypes(want, list)
	case "leftovers":
		return narrowItems(want, list)
	}
	return have
}

// partsOf compares texts: an expected part of the text is enough, so that a case need not repeat a long text.
func partsOf(want, have []any) []any {
	rest := slices.Clone(have)
	out := []any{}
	for _, w := range want {
		part, _ := w.(string)
		i := slices.IndexFunc(rest, func(h any) bool {
			whole, _ := h.(string)
			return part != "" && strings.Contains(whole, part)
		})
		if i >= 0 {
			out, rest = append(out, w), slices.Delete(rest, i, i+1)
		}
	}
	return append(out, rest...)
}

// sameTypes returns the condition of each type that is expected.
func sameTypes(want, have []any) []any {
	if len(want) == 0 {
		return have
	}
	out := []any{}
	for _, w := range want {
		wanted, _ := w.(map[string]any)
		for _, h := range have {
			if condition, _ := h.(map[string]any); condition["type"] == wanted["type"] {
				out = append(out, restrict(wanted, condition))
			}
		}
	}
	return out
}

func narrowItems(want, have []any) []any {
	out := []any{}
	for i, h := range have {
		item, _ := h.(map[string]any)
		if i < len(want) {
			if wanted, _ := want[i].(map[string]any); len(wanted) > 0 {
				item = restrict(wanted, item)
			}
		}
		out = append(out, item)
	}
	return out
}

// unknownExpectations returns errors for names in an expectation that the config does not have.
func (c *testCase) unknownExpectations(out result) []error {
	if out.downstreams == nil {
		return nil
	}
	r := &reader{path: c.path}
	_, node := child(c.root, "expect")
	downstreams := section{r, node, c.expect, "expect"}.section("downstreams")
	for _, name := range slices.Sorted(maps.Keys(downstreams.value)) {
		if !slices.Contains(out.downstreams, name) {
			fix := validNames(out.downstreams)
			if near := spelling.Closest(name, out.downstreams); near != "" {
				fix = "did you mean " + near + "?"
			}
			r.problem(downstreams.lineOf(name), "%s: unknown downstream: %s", downstreams.pathTo(name), fix)
		}
		downstreams.section(name).section("fields").checkPaths()
	}
	section{r, node, c.expect, "expect"}.section("before").section("fields").checkPaths()
	return r.sorted()
}

// checkPaths checks that the keys are field paths.
func (s section) checkPaths() {
	for _, path := range slices.Sorted(maps.Keys(s.value)) {
		if _, err := fieldpath.Parse(path); err != nil {
			s.problem(s.lineOf(path), "%s: %v", s.at, err)
		}
	}
}

func equal(a, b any) bool { return equality.Semantic.DeepEqual(a, b) }
