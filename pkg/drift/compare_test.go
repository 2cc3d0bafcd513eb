package drift_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/corollary-dev/corollary/internal/golden"
	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
)

// TestCompare runs the cases in testdata/compare. Each is an archive: its comment is the reason, view.yaml the view,
// live.yaml the live object, desired.yaml the desired one, before.yaml the object before an apply (live.yaml is then
// the result), and every other file is the expected result of the function of that name.
func TestCompare(t *testing.T) {
	golden.Cases(t, "testdata/compare/*.txtar", func(t *testing.T, c *golden.Case) {
		compared := caseOf(t, c)
		for _, f := range c.Files {
			if run, ok := functions[f.Name]; ok {
				c.Want(t, f.Name, run(t, compared))
			}
		}
	})
}

// comparison is one case.
type comparison struct {
	view         *drift.View
	desired      map[string]any
	live, before *unstructured.Unstructured
}

func caseOf(t *testing.T, from *golden.Case) comparison {
	t.Helper()
	c := comparison{view: &drift.View{Manager: manager}}
	for _, f := range from.Files {
		switch f.Name {
		case "view.yaml":
			c.view = viewOf(t, string(f.Data))
		case "desired.yaml":
			c.desired = formOf(t, parse(t, string(f.Data)))
		case "live.yaml":
			c.live = object(t, string(f.Data))
		case "before.yaml":
			c.before = object(t, string(f.Data))
		default:
			if functions[f.Name] == nil {
				t.Fatalf("unknown file %s", f.Name)
			}
		}
	}
	return c
}

func viewOf(t *testing.T, text string) *drift.View {
	t.Helper()
	var v struct {
		Initial, Exclusive []string
		Hash               drift.Key
		Keep               [][]string
		KeepWhole          bool
		OwnerAnnotation    string
	}
	must.Do(t, yaml.UnmarshalStrict([]byte(text), &v))
	out := &drift.View{Manager: manager, Hash: v.Hash, Keep: v.Keep, KeepWhole: v.KeepWhole, OwnerAnnotation: v.OwnerAnnotation}
	for _, p := range v.Initial {
		out.Initial = append(out.Initial, fieldpath.MustParse(p))
	}
	for _, p := range v.Exclusive {
		out.Exclusive = append(out.Exclusive, fieldpath.MustParse(p))
	}
	return out
}

var functions map[string]func(*testing.T, comparison) string

func init() {
	functions = map[string]func(*testing.T, comparison) string{
		"changed": func(_ *testing.T, c comparison) string {
			var b strings.Builder
			for _, d := range drift.Changed(c.desired, c.live, c.view) {
				fmt.Fprintf(&b, "%s: want %v, have %v, by %q\n", d.Path, d.Want, d.Have, d.Manager)
			}
			return b.String()
		},
		"extras": func(_ *testing.T, c comparison) string {
			var b strings.Builder
			for _, p := range drift.Extras(c.live, c.desired, c.view.Exclusive) {
				fmt.Fprintln(&b, p)
			}
			return b.String()
		},
		"lost": func(_ *testing.T, c comparison) string {
			var b strings.Builder
			for _, f := range drift.LostFields(c.before, c.live, manager) {
				fmt.Fprintf(&b, "%s: %s\n", f.Path, f.Manager)
			}
			return b.String()
		},
		"projection.yaml": func(t *testing.T, c comparison) string {
			projection, ok := drift.Project(c.live, manager)
			if !ok {
				return "none\n"
			}
			return text(t, projection)
		},
		"facts": func(t *testing.T, c comparison) string {
			l := c.view.Live(c.live)
			var b strings.Builder
			fmt.Fprintf(&b, "managed: %v\nco-owned: %v\nextra: %v\ndeleting: %v\n", l.Managed, l.CoOwned, l.Extra, l.Deleting)
			if c.desired != nil {
				fmt.Fprintf(&b, "as desired: %v\n", l.P == drift.Desired(c.desired, c.view))
			}
			for i, f := range l.Initial {
				fmt.Fprintf(&b, "initial %s: ours %v, others %v, present %v, value %v\n", c.view.Initial[i], f.Ours, f.Others, f.Present, f.Value)
			}
			return b.String()
		},
		"kept.yaml": func(t *testing.T, c comparison) string {
			l := c.view.Live(c.live)
			return text(t, l.Kept)
		},
	}
}

func text(t *testing.T, v any) string {
	t.Helper()
	out := must.Get(yaml.Marshal(v)).In(t)
	return string(out)
}
