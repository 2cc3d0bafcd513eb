// Package rehub rewrites a conversion for another hub: rules are read as assignments, which can be inverted and put in
// a row.
package rehub

import (
	"fmt"
	"maps"
	"slices"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"

	"github.com/corollary-dev/corollary/pkg/config/conversion"
	"github.com/corollary-dev/corollary/pkg/convert"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/rules"
)

// Rehub writes a conversion, which must compile, with another one of its versions as the hub: the rules of that version
// are inverted, and those of each other spoke are put in a row with them. problems name, by version, what cannot be
// said in rules: it is left out.
func Rehub(
	conf *conversion.Conversion, hub string, versions []*kinds.Version,
) (*conversion.Conversion, []*convert.Problem, error) {
	schemas := map[string]*structuralschema.Structural{}
	for _, v := range versions {
		schemas[v.Name] = v.Structural
	}
	n := slices.IndexFunc(conf.Spokes, func(s conversion.Spoke) bool { return s.Version == hub })
	switch {
	case hub == conf.Hub:
		return nil, nil, fmt.Errorf("%s is the hub already", hub)
	case n < 0:
		return nil, nil, fmt.Errorf("%s is not one of its spokes", hub)
	}
	env, err := rules.NewEnv(rules.EnvOptions{})
	if err != nil {
		return nil, nil, err
	}
	next := conf.Spokes[n]
	made := *conf
	made.Hub, made.Spokes = hub, nil
	var problems []*convert.Problem
	for i, s := range conf.Spokes {
		if i == n {
			back := invertedRule(*rulesOf(next))
			made.Spokes = append(made.Spokes, conversion.Spoke{
				Version: conf.Hub, Rules: back.Rules, ToHub: back.ToHub, FromHub: back.FromHub, Lost: next.Lost,
			})
			continue
		}
		c := &composer{env: env}
		spoke, err := c.spoke(s, next, schemas[s.Version], schemas[conf.Hub], schemas[hub])
		if err != nil {
			return nil, nil, err
		}
		made.Spokes = append(made.Spokes, spoke)
		for _, text := range c.problems {
			problems = append(problems, &convert.Problem{Path: fmt.Sprintf("spokes[%d]", len(made.Spokes)-1),
				Message: s.Version + ": " + text})
		}
	}
	return &made, problems, nil
}

// rulesOf is all that a spoke has, as a rule without a form.
func rulesOf(s conversion.Spoke) *conversion.ConversionRule {
	return &conversion.ConversionRule{Rules: s.Rules, ToHub: s.ToHub, FromHub: s.FromHub}
}

// invertedRule swaps the sides of a rule, or of all that a spoke has.
func invertedRule(r conversion.ConversionRule) conversion.ConversionRule {
	back := conversion.ConversionRule{Default: r.Default, Value: r.Value, Values: inverted(r.Values),
		ToHub: r.FromHub, FromHub: r.ToHub}
	for _, inner := range r.Rules {
		back.Rules = append(back.Rules, invertedRule(inner))
	}
	form, from := formOfRule(&r)
	if form == formDefault {
		return back
	}
	to := r.To
	if to == "" || to == from {
		to, from = from, ""
	}
	return withForm(back, opposite[form], to, from)
}

// withForm sets the form of a rule and its paths; to may be empty, for the same.
func withForm(r conversion.ConversionRule, form, from, to string) conversion.ConversionRule {
	switch form {
	case formWrap:
		r.Wrap = from
	case formUnwrap:
		r.Unwrap = from
	case formForEach:
		r.ForEach = from
	default:
		r.Move = from
	}
	if r.To = to; from == to {
		r.To = ""
	}
	return r
}

// spoke puts the rules of a spoke and those of the next hub in a row. s, old and next are the schemas of the spoke, the
// hub that was, and the next one.
func (c *composer) spoke(
	from, through conversion.Spoke, s, old, next *structuralschema.Structural,
) (conversion.Spoke, error) {
	made := conversion.Spoke{Version: from.Version}
	toOld, fromOld, err := directions(rulesOf(from), s, old)
	if err != nil {
		return made, err
	}
	toOldFromNext, toNext, err := directions(rulesOf(through), next, old)
	if err != nil {
		return made, err
	}
	there, back := c.compose(toOld, toNext), c.compose(toOldFromNext, fromOld)
	all := c.written(there, back, s, next)
	made.Rules, made.ToHub, made.FromHub = all.Rules, all.ToHub, all.FromHub
	for _, lost := range slices.Concat(from.Lost, through.Lost) {
		p, err := fieldpath.Parse(lost.Path)
		if err == nil && (p[0].Field == "metadata" || (kinds.Field(s, p) == nil) != (kinds.Field(next, p) == nil)) {
			made.Lost = append(made.Lost, lost)
		}
	}
	return made, nil
}

// written writes two directions as rules where they are each other's way back, as steps where not. s and h are the
// schemas of the spoke and of the hub.
func (c *composer) written(there, back direction, s, h *structuralschema.Structural) conversion.ConversionRule {
	there.sets, back.sets = there.declared(h), back.declared(s)
	var made conversion.ConversionRule
	taken := map[int]bool{}       // of back.sets
	done := [2][]fieldpath.Path{} // the fields of the spoke and of the hub that rules are about
	for _, a := range there.sets {
		i := slices.IndexFunc(back.sets, a.isWayBack)
		switch {
		case i >= 0:
			taken[i] = true
			done[0], done[1] = append(done[0], a.value.from), append(done[1], a.to)
			if r, ok := c.rule(a, back.sets[i], s, h); ok {
				made.Rules = append(made.Rules, r)
			}
		case a.isDefault(back):
			done[1] = append(done[1], a.to)
			made.Rules = append(made.Rules, conversion.ConversionRule{Default: a.to.String(), Value: a.value.constant})
		default:
			made.ToHub = append(made.ToHub, c.step(a)...)
		}
	}
	for i, b := range back.sets {
		switch {
		case taken[i]:
		case b.isDefault(there):
			done[0] = append(done[0], b.to)
			made.Rules = append(made.Rules, conversion.ConversionRule{Default: b.to.String(), Value: b.value.constant})
		default:
			made.FromHub = append(made.FromHub, c.step(b)...)
		}
	}
	made.ToHub = append(made.ToHub, there.removals(h, done[0])...)
	made.FromHub = append(made.FromHub, back.removals(s, done[1])...)
	return made
}

// declared are the assignments to fields that a schema has: others were for the hub in between.
func (d direction) declared(target *structuralschema.Structural) []assignment {
	return slices.DeleteFunc(slices.Clone(d.sets), func(a assignment) bool {
		return a.to[0].Field != "metadata" && kinds.Field(target, a.to) == nil
	})
}

// isWayBack reports whether an assignment undoes another one.
func (a assignment) isWayBack(b assignment) bool {
	v, w := a.value, b.value
	return v.from != nil && w.from != nil && v.from.Equal(b.to) && w.from.Equal(a.to) &&
		(v.items == nil) == (w.items == nil) &&
		w.change.form == opposite[v.change.form] && maps.Equal(w.change.values, inverted(v.change.values))
}

// isDefault reports whether an assignment gives a constant to a field that the way back removes.
func (a assignment) isDefault(back direction) bool {
	isConstant := a.value.from == nil && a.value.expr == ""
	return isConstant && slices.ContainsFunc(back.clears, func(p fieldpath.Path) bool { return p.Equal(a.to) })
}

// rule is that of an assignment and its way back. ok is false where they change nothing.
func (c *composer) rule(a, b assignment, s, h *structuralschema.Structural) (r conversion.ConversionRule, ok bool) {
	form := a.value.change.form
	if a.value.items != nil {
		form = formForEach
		r = c.written(*a.value.items, *b.value.items, kinds.ItemOf(kinds.Field(s, a.value.from)),
			kinds.ItemOf(kinds.Field(h, a.to)))
	}
	r.Values = a.value.change.values
	changes := form != formMove || len(r.Values) > 0 || !a.value.from.Equal(a.to)
	return withForm(r, form, a.value.from.String(), a.to.String()), changes
}

// step sets what an assignment does.
func (c *composer) step(a assignment) []conversion.ConversionStep {
	if a.value.items != nil {
		c.problem("%s: its items are converted, and nothing converts them back", a.to)
		return nil
	}
	text := a.value.expr
	if text == "" {
		var err error
		if text, err = a.value.text(); err != nil {
			c.problem("%s: %v", a.to, err)
			return nil
		}
	}
	return []conversion.ConversionStep{{Set: a.to.String(), Expression: text}}
}

// removals are steps for the fields that are cleared, that rules are not about, and that the target would keep: it has
// fields of that name.
func (d direction) removals(target *structuralschema.Structural, done []fieldpath.Path) []conversion.ConversionStep {
	var paths []string
	for _, p := range d.clears {
		isSet := slices.ContainsFunc(d.sets, func(a assignment) bool { return p.HasPrefix(a.to) })
		isDone := slices.ContainsFunc(done, func(other fieldpath.Path) bool { return p.HasPrefix(other) })
		if text := p.String(); !isSet && !isDone && kinds.Field(target, p) != nil && !slices.Contains(paths, text) {
			paths = append(paths, text)
		}
	}
	if len(paths) == 0 {
		return nil
	}
	return []conversion.ConversionStep{{Remove: paths}}
}
