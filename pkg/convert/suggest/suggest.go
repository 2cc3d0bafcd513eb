// Package suggest drafts a conversion from the schemas of two versions alone.
package suggest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"

	"github.com/corollary-dev/corollary/pkg/config/conversion"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/spelling"
)

// Suggest drafts how a version converts to the hub and back, from their schemas alone: fields that seem to have another
// name or place, values that are lists of one item on the other side, enums whose words differ, and types that can be
// converted. What it cannot tell is left out: Compile finds it. guesses are the paths of the spoke whose rule a person
// should look at, with the reason.
func Suggest(spoke, hub *kinds.Version) (draft conversion.Spoke, guesses map[string]string) {
	guesses = map[string]string{}
	d := &drafter{guesses: guesses}
	rules := d.rules(spoke.Structural, hub.Structural, nil, false)
	return conversion.Spoke{Version: spoke.Name, Rules: rules, ToHub: d.toHub, FromHub: d.fromHub}, guesses
}

// Suspected are rules that Suggest does not draft, since too little speaks for them: fields of one type in one place
// that only one version has.
func Suspected(spoke, hub *kinds.Version) []conversion.ConversionRule {
	d := &drafter{guesses: map[string]string{}}
	d.rules(spoke.Structural, hub.Structural, nil, false)
	return d.suspected
}

// drafter drafts rules and steps for an object, or for an item of a list or map.
type drafter struct {
	toHub, fromHub []conversion.ConversionStep
	guesses        map[string]string // of all drafters of a spoke
	suspected      []conversion.ConversionRule
}

// field is one that the other side does not have at that path.
type field struct {
	path   fieldpath.Path
	schema *structuralschema.Structural
}

// rules drafts what puts one object in the place of the other. above is where it is, for guesses; item: in a list or
// map.
func (d *drafter) rules(
	s, h *structuralschema.Structural, above fieldpath.Path, item bool,
) []conversion.ConversionRule {
	var rules []conversion.ConversionRule
	var left, right []field
	var walk func(s, h *structuralschema.Structural, at fieldpath.Path)
	walk = func(s, h *structuralschema.Structural, at fieldpath.Path) {
		for _, name := range kinds.FieldNames(s, h) {
			if len(at) == 0 && !item && kinds.IsHead(name) {
				continue
			}
			mine, theirs, p := kinds.Member(s, name), kinds.Member(h, name), at.Child(name)
			switch {
			case theirs == nil:
				left = append(left, field{p, mine})
			case mine == nil:
				right = append(right, field{p, theirs})
			case !kinds.IsSameType(mine, theirs):
				d.retype(p, mine, theirs, above)
			case len(mine.Properties)+len(theirs.Properties) > 0:
				walk(mine, theirs, p)
			default:
				rules = append(rules, d.sameField(p, mine, theirs, above)...)
			}
		}
	}
	walk(s, h, nil)
	return append(rules, d.matches(left, right, above)...)
}

// sameField drafts a rule for a field that both have at one path, with one type.
func (d *drafter) sameField(
	p fieldpath.Path, mine, theirs *structuralschema.Structural, above fieldpath.Path,
) []conversion.ConversionRule {
	if s, h := kinds.ItemOf(mine), kinds.ItemOf(theirs); s != nil && h != nil {
		inner := &drafter{guesses: d.guesses}
		rules := inner.rules(s, h, slices.Concat(above, p), true)
		if len(rules)+len(inner.toHub) == 0 {
			return nil
		}
		return []conversion.ConversionRule{{ForEach: p.String(), Rules: rules, ToHub: inner.toHub, FromHub: inner.fromHub}}
	}
	if values := d.words(mine, theirs, slices.Concat(above, p)); values != nil {
		return []conversion.ConversionRule{{Move: p.String(), Values: values}}
	}
	return nil
}

// words pairs the words of two enums that only one of them has.
func (d *drafter) words(mine, theirs *structuralschema.Structural, at fieldpath.Path) map[string]string {
	ours, others := onlyIn(mine, theirs), onlyIn(theirs, mine)
	if len(ours) == 0 || len(others) == 0 {
		return nil
	}
	values := map[string]string{}
	for _, word := range ours {
		to := spelling.Closest(word, others)
		if to == "" && len(ours) == 1 && len(others) == 1 {
			to = others[0]
		}
		if to == "" {
			continue
		}
		values[word] = to
		others = slices.DeleteFunc(others, func(o string) bool { return o == to })
	}
	if len(values) == 0 {
		return nil
	}
	d.guesses[at.String()] = "the words of its enum differ"
	return values
}

// onlyIn are the words of an enum that another one does not have.
func onlyIn(a, b *structuralschema.Structural) []string {
	var words []string
	for _, word := range enumOf(a) {
		if !slices.Contains(enumOf(b), word) {
			words = append(words, word)
		}
	}
	return words
}

func enumOf(s *structuralschema.Structural) []string {
	var words []string
	if s.ValueValidation != nil {
		for _, v := range s.ValueValidation.Enum {
			if word, ok := v.Object.(string); ok {
				words = append(words, word)
			}
		}
	}
	return words
}

// conversions are CEL functions from one type to another.
var conversions = map[string]string{"string": "string", "integer": "int", "number": "double", "boolean": "bool"}

// retype drafts expressions for a field whose type differs.
func (d *drafter) retype(p fieldpath.Path, mine, theirs *structuralschema.Structural, above fieldpath.Path) {
	to, from := conversions[theirs.Type], conversions[mine.Type]
	if to == "" || from == "" {
		return
	}
	self := "self" + p.String()
	d.toHub = append(d.toHub, conversion.ConversionStep{Set: p.String(), Expression: fmt.Sprintf("%s(%s)", to, self)})
	d.fromHub = append(d.fromHub, conversion.ConversionStep{Set: p.String(),
		Expression: fmt.Sprintf("%s(%s)", from, self)})
	d.guesses[slices.Concat(above, p).String()] = fmt.Sprintf("its type changes from %s to %s, and it may be missing",
		mine.Type, theirs.Type)
}

// match is a pair of fields that may be one.
type match struct {
	left, right int
	form        string
	likeness    float64
}

// leastLikeness is what a pair needs to be suggested.
const leastLikeness = 0.6

// mostSuspected is how many fields one may be suspected to be.
const mostSuspected = 3

// matches drafts rules for fields that only one side has: the likeliest pairs first, each field once. Objects without a
// counterpart are looked into.
func (d *drafter) matches(left, right []field, above fieldpath.Path) []conversion.ConversionRule {
	left, right = opened(left, nested(right)), opened(right, nested(left))
	var pairs []match
	for i, l := range left {
		for j, r := range right {
			if form := formOf(l.schema, r.schema); form != "" {
				alone := countOf(left, l.schema) == 1 && countOf(right, r.schema) == 1
				pairs = append(pairs, match{i, j, form, likeness(l, r, alone)})
			}
		}
	}
	slices.SortStableFunc(pairs, func(a, b match) int {
		switch {
		case a.likeness > b.likeness:
			return -1
		case a.likeness < b.likeness:
			return 1
		}
		return 0
	})
	var rules []conversion.ConversionRule
	takenLeft, takenRight := map[int]bool{}, map[int]bool{}
	for _, m := range pairs {
		if m.likeness < leastLikeness || takenLeft[m.left] || takenRight[m.right] {
			continue
		}
		takenLeft[m.left], takenRight[m.right] = true, true
		from, to := left[m.left].path, right[m.right].path
		rule := conversion.ConversionRule{To: to.String()}
		switch m.form {
		case "wrap":
			rule.Wrap = from.String()
		case "unwrap":
			rule.Unwrap = from.String()
		default:
			rule.Move = from.String()
			rule.Values = d.words(left[m.left].schema, right[m.right].schema, slices.Concat(above, from))
		}
		rules = append(rules, rule)
		d.guesses[slices.Concat(above, from).String()] = "it is taken for " + to.String() + " by its name, place and type"
	}
	slices.SortFunc(rules, func(a, b conversion.ConversionRule) int {
		return strings.Compare(a.Move+a.Wrap+a.Unwrap, b.Move+b.Wrap+b.Unwrap)
	})
	d.suspect(untaken(left, takenLeft), untaken(right, takenRight))
	return rules
}

func untaken(list []field, taken map[int]bool) []field {
	var rest []field
	for i, f := range list {
		if !taken[i] {
			rest = append(rest, f)
		}
	}
	return rest
}

// suspect notes which of the fields without a counterpart may be one: those of one type in one place, where one side
// has only one.
func (d *drafter) suspect(left, right []field) {
	for _, l := range left {
		for _, r := range right {
			ours, theirs := countOf(left, l.schema), countOf(right, l.schema)
			if formOf(l.schema, r.schema) == "move" && min(ours, theirs) == 1 && max(ours, theirs) <= mostSuspected &&
				l.path[:len(l.path)-1].Equal(r.path[:len(r.path)-1]) {
				d.suspected = append(d.suspected, conversion.ConversionRule{Move: l.path.String(), To: r.path.String()})
			}
		}
	}
}

// opened replaces objects by the fields in them, unless the other side has one that is alike.
func opened(list, others []field) []field {
	var out []field
	for _, f := range list {
		alike := slices.ContainsFunc(others, func(o field) bool { return sameShape(f.schema, o.schema) })
		if len(f.schema.Properties) == 0 || alike {
			out = append(out, f)
			continue
		}
		out = append(out, opened(f.inner(), others)...)
	}
	return out
}

// nested are fields with all fields in them.
func nested(list []field) []field {
	var out []field
	for _, f := range list {
		out = append(append(out, f), nested(f.inner())...)
	}
	return out
}

// inner are the fields of an object.
func (f field) inner() []field {
	var inner []field
	for _, name := range slices.Sorted(maps.Keys(f.schema.Properties)) {
		inner = append(inner, field{f.path.Child(name), kinds.Member(f.schema, name)})
	}
	return inner
}

// sameShape compares all that two schemas allow.
func sameShape(a, b *structuralschema.Structural) bool {
	if !kinds.IsSameType(a, b) || len(a.Properties) != len(b.Properties) {
		return false
	}
	for name := range a.Properties {
		if kinds.Member(b, name) == nil || !sameShape(kinds.Member(a, name), kinds.Member(b, name)) {
			return false
		}
	}
	if a.Items != nil {
		return sameShape(a.Items, b.Items)
	}
	return true
}

// formOf is the rule that brings a value of one schema into the form of another; empty for none.
func formOf(s, h *structuralschema.Structural) string {
	switch {
	case sameShape(s, h):
		return "move"
	case h.Items != nil && sameShape(s, h.Items):
		return "wrap"
	case s.Items != nil && sameShape(s.Items, h):
		return "unwrap"
	}
	return ""
}

func countOf(list []field, s *structuralschema.Structural) int {
	n := 0
	for _, f := range list {
		if sameShape(f.schema, s) {
			n++
		}
	}
	return n
}

// likeness says how likely it is that two fields are one, by their names and places. alone: no other field has their
// type.
func likeness(l, r field, alone bool) float64 {
	a, b := strings.ToLower(l.path[len(l.path)-1].Field), strings.ToLower(r.path[len(r.path)-1].Field)
	score := 0.0
	switch {
	case a == b:
		score = 0.7
	case a+"s" == b || b+"s" == a:
		score = 0.65
	case strings.Contains(a, b) || strings.Contains(b, a):
		score = 0.5
	case spelling.Closest(a, []string{b}) != "":
		score = 0.45
	}
	if l.path[:len(l.path)-1].Equal(r.path[:len(r.path)-1]) {
		score += 0.2
	}
	if alone {
		score += 0.2
	}
	if words := enumOf(l.schema); len(words) > 0 && slices.Equal(words, enumOf(r.schema)) {
		score += 0.3
	}
	if l.schema.Description != "" && l.schema.Description == r.schema.Description {
		score += 0.4
	}
	return score
}
