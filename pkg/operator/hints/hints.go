// Package hints finds what check should ask the author of configs about: fields of a kind without an effect, fields of
// two concerns, and data that is lost or left behind. watch.acknowledged says that fields are meant. Kinds of others,
// whose status is not ours, are not looked at.
package hints

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/operator/compile"
	"github.com/corollary-dev/corollary/pkg/render/check"
)

const (
	// smallestGroup is how many fields a concern has at least.
	smallestGroup = 3
	// maxListed is how many fields a hint names.
	maxListed = 10
)

// Of returns what check should ask the author of the configs about, by the pipeline that it concerns.
func Of(list []compile.Compiled) map[*compile.Pipeline][]config.Error {
	hints := map[*compile.Pipeline][]config.Error{}
	var done []*compile.Pipeline
	for _, c := range list {
		if found := slices.Concat(generatedHints(c), recordHints(c), chainHints(list, c)); len(found) > 0 {
			hints[c.Pipeline] = append(hints[c.Pipeline], found...)
		}
		if slices.Contains(done, c.Pipeline) || c.Pipeline.Upstream.Schema == nil ||
			kinds.IsBuiltin(c.Pipeline.Upstream.GVK.GroupKind()) {
			continue
		}
		var watchers []compile.Compiled
		for _, other := range list {
			if other.Pipeline.Upstream.GVK == c.Pipeline.Upstream.GVK {
				watchers, done = append(watchers, other), append(done, other.Pipeline)
			}
		}
		if slices.ContainsFunc(watchers, func(w compile.Compiled) bool {
			return w.File.SpecSchema() != nil || w.Pipeline.StatusEnabled()
		}) {
			lint(watchers, inputReads(list, c.Pipeline.Upstream.GVK.GroupKind()), hints)
		}
	}
	return hints
}

// inputReads are the fields of a kind that configs read as an input.
func inputReads(list []compile.Compiled, kind schema.GroupKind) (reads []check.Read) {
	for _, c := range list {
		for _, in := range c.Pipeline.Inputs {
			if in.Kind.GVK.GroupKind() != kind {
				continue
			}
			if in.View.Whole {
				reads = append(reads, check.Read{Whole: true})
			}
			for _, path := range in.View.Paths {
				reads = append(reads, check.Read{Path: path, Whole: true})
			}
		}
	}
	return reads
}

// lint looks at one kind and all operators that watch it. elsewhere are reads of others.
func lint(watchers []compile.Compiled, elsewhere []check.Read, hints map[*compile.Pipeline][]config.Error) {
	by := watchers[0]
	for _, w := range slices.Backward(watchers) {
		if w.File.SpecSchema() != nil {
			by = w
		}
	}
	l := &linter{kind: by.Pipeline.Upstream.GVK.Kind, fields: leaves(by.Pipeline.Upstream.Schema)}
	l.acknowledge(watchers)
	at := "watch.kind"
	if by.File.SpecSchema() != nil {
		at = "watch.schema"
	}
	if unread := l.without(l.unread(watchers, elsewhere)); len(unread) > 0 {
		hints[by.Pipeline] = append(hints[by.Pipeline], *by.File.Errorf(at,
			"remove what nothing needs, or add it to watch.acknowledged",
			"nothing in the config reads %s", listed(unread)))
	}
	for _, w := range watchers {
		for _, group := range l.apart(w.Pipeline) {
			name := w.Pipeline.Downstreams[group.downstreams[0]].Name
			if len(group.downstreams) > 1 {
				name += " and those that read the same fields"
			}
			if fields := l.without(group.fields); len(fields) >= smallestGroup {
				hints[w.Pipeline] = append(hints[w.Pipeline], *w.File.Errorf(at,
					"if this is a concern of its own, give it a kind and a config of its own; else add the fields to "+
						"watch.acknowledged",
					"only downstream %s reads %s, and it reads nothing of what the others read", name, listed(fields)))
			}
		}
	}
	for _, e := range l.needless() {
		hints[e.Pipeline] = append(hints[e.Pipeline], e.hint)
	}
}

type linter struct {
	kind         string
	fields       [][]string // of the kind, without those that have fields themselves
	acknowledged []*acknowledgment
}

// acknowledgment is an item of watch.acknowledged.
type acknowledgment struct {
	compile.Compiled
	at   string
	path []string
	used bool
}

func (l *linter) acknowledge(watchers []compile.Compiled) {
	for _, w := range watchers {
		for i, text := range w.File.Watch.Acknowledged {
			path, _ := fieldpath.Parse(text) // the loader has checked it
			a := &acknowledgment{Compiled: w, at: fmt.Sprintf("watch.acknowledged[%d]", i)}
			for _, step := range path {
				a.path = append(a.path, step.Field)
			}
			l.acknowledged = append(l.acknowledged, a)
		}
	}
}

// without leaves out the fields that are acknowledged.
func (l *linter) without(fields [][]string) [][]string {
	return slices.DeleteFunc(slices.Clone(fields), func(f []string) bool {
		found := false
		for _, a := range l.acknowledged {
			if len(a.path) <= len(f) && slices.Equal(a.path, f[:len(a.path)]) {
				a.used, found = true, true
			}
		}
		return found
	})
}

type needless struct {
	compile.Compiled
	hint config.Error
}

// needless are acknowledgments of what check would not mention.
func (l *linter) needless() []needless {
	var all []needless
	for _, a := range l.acknowledged {
		if a.used {
			continue
		}
		problem := "there is nothing to acknowledge about %s"
		if !slices.ContainsFunc(l.fields, func(f []string) bool {
			return len(a.path) <= len(f) && slices.Equal(a.path, f[:len(a.path)])
		}) {
			problem = l.kind + " has no field %s"
		}
		all = append(all, needless{a.Compiled, *a.File.Errorf(a.at, "remove it", problem, dotted(a.path))})
	}
	return all
}

// leaves are the fields of a schema that have no fields themselves, without those that every kind has.
func leaves(root *spec.Schema) [][]string {
	var all [][]string
	for _, name := range slices.Sorted(maps.Keys(root.Properties)) {
		if property := root.Properties[name]; !slices.Contains(check.OfEveryKind, name) {
			all = append(all, leavesBelow(&property, []string{name})...)
		}
	}
	return all
}

func leavesBelow(s *spec.Schema, at []string) [][]string {
	for s.Items != nil && s.Items.Schema != nil {
		s = s.Items.Schema
	}
	if len(s.Properties) == 0 {
		if len(at) == 1 && s.AdditionalProperties == nil { // a spec without fields
			return nil
		}
		return [][]string{at}
	}
	var all [][]string
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		property := s.Properties[name]
		all = append(all, leavesBelow(&property, append(slices.Clip(at), name))...)
	}
	return all
}

// unread are the fields that no operator reads.
func (l *linter) unread(watchers []compile.Compiled, elsewhere []check.Read) [][]string {
	all := slices.Clone(elsewhere)
	for _, w := range watchers {
		for _, reads := range w.Pipeline.UpstreamReads {
			all = append(all, reads...)
		}
	}
	return slices.DeleteFunc(slices.Clone(l.fields), func(f []string) bool { return readsField(all, f) })
}

func readsField(reads []check.Read, field []string) bool {
	return slices.ContainsFunc(reads, func(r check.Read) bool { return r.IsOf(field) })
}

// group are downstreams that read the same fields, directly or through one another, and those fields.
type group struct {
	downstreams []int
	fields      [][]string
}

// apart are the groups that have no field in common with any other, but for the largest one.
func (l *linter) apart(p *compile.Pipeline) []group {
	of := make([]int, len(p.Downstreams)) // the group of each downstream: the lowest number in it
	for i := range of {
		of[i] = i
	}
	join := func(a, b int) {
		from, to := max(of[a], of[b]), min(of[a], of[b])
		for i := range of {
			if of[i] == from {
				of[i] = to
			}
		}
	}
	readers := map[int][]int{} // by the number of a field
	for f, field := range l.fields {
		for i := range p.Downstreams {
			if readsField(p.UpstreamReads[i], field) {
				readers[f] = append(readers[f], i)
				join(i, readers[f][0])
			}
		}
	}
	for i, d := range p.Downstreams {
		for _, sibling := range d.Siblings {
			join(i, sibling)
		}
	}
	groups := map[int]*group{}
	for i, g := range of {
		if groups[g] == nil {
			groups[g] = &group{}
		}
		groups[g].downstreams = append(groups[g].downstreams, i)
	}
	for f, field := range l.fields {
		if len(readers[f]) > 0 {
			g := groups[of[readers[f][0]]]
			g.fields = append(g.fields, field)
		}
	}
	return smaller(groups)
}

// smaller are the groups with enough fields, if there are several, without the one that has the most.
func smaller(groups map[int]*group) []group {
	var all []group
	largest := -1
	for _, i := range slices.Sorted(maps.Keys(groups)) {
		if g := groups[i]; len(g.fields) >= smallestGroup {
			all = append(all, *g)
			if largest < 0 || len(g.fields) > len(all[largest].fields) {
				largest = len(all) - 1
			}
		}
	}
	if len(all) < 2 {
		return nil
	}
	return slices.Delete(all, largest, largest+1)
}

// listed names fields.
func listed(fields [][]string) string {
	var texts []string
	for _, f := range fields[:min(len(fields), maxListed)] {
		texts = append(texts, dotted(f))
	}
	text := strings.Join(texts, ", ")
	if more := len(fields) - maxListed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

func dotted(path []string) string { return fieldpath.New(path...).String() }
