package rehub

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"

	"github.com/corollary-dev/corollary/pkg/config/conversion"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/rules"
	"github.com/corollary-dev/corollary/pkg/rules/translate"
)

// direction is what a spoke's rules do on one way, as assignments: two of them can be put in a row. What is not
// mentioned stays where it is.
type direction struct {
	sets   []assignment
	clears []fieldpath.Path
}

// assignment gives a field of the target the value of a source.
type assignment struct {
	to    fieldpath.Path
	value source
}

// source is where a value comes from: from a field, if from is set; else from an expression, or it is a constant.
type source struct {
	from     fieldpath.Path
	change   change
	items    *direction // what happens to each item, for forEach
	expr     string
	constant any
}

// change is what happens to a value on the way.
type change struct {
	form   string // move, wrap, unwrap
	values map[string]string
}

func (c change) isNone() bool { return c.form == formMove && len(c.values) == 0 }

const (
	formMove    = "move"
	formWrap    = "wrap"
	formUnwrap  = "unwrap"
	formForEach = "forEach"
	formDefault = "default"
)

// opposite is the form of the way back.
var opposite = map[string]string{formMove: formMove, formWrap: formUnwrap,
	formUnwrap: formWrap, formForEach: formForEach}

// directions reads the rules and steps of a spoke, or of the items of a list, whose schemas are s in the spoke and h in
// the hub.
func directions(r *conversion.ConversionRule, s, h *structuralschema.Structural) (toHub, fromHub direction, err error) {
	for i := range r.Rules {
		if err := readRule(&r.Rules[i], s, h, &toHub, &fromHub); err != nil {
			return toHub, fromHub, err
		}
	}
	for d, steps := range map[*direction][]conversion.ConversionStep{&toHub: r.ToHub, &fromHub: r.FromHub} {
		for _, step := range steps {
			if step.Set != "" {
				to, err := fieldpath.Parse(step.Set)
				if err != nil {
					return toHub, fromHub, err
				}
				d.sets = append(d.sets, assignment{to, source{expr: step.Expression}})
			}
			for _, text := range step.Remove {
				p, err := fieldpath.Parse(text)
				if err != nil {
					return toHub, fromHub, err
				}
				d.clears = append(d.clears, p)
			}
		}
	}
	return toHub, fromHub, nil
}

// formOfRule is the form of a rule, with its path.
func formOfRule(r *conversion.ConversionRule) (form, path string) {
	for _, f := range [][2]string{{formMove, r.Move}, {formWrap, r.Wrap},
		{formUnwrap, r.Unwrap}, {formForEach, r.ForEach}} {
		if f[1] != "" {
			return f[0], f[1]
		}
	}
	return formDefault, r.Default
}

func readRule(r *conversion.ConversionRule, s, h *structuralschema.Structural, toHub, fromHub *direction) error {
	form, text := formOfRule(r)
	from, err := fieldpath.Parse(text)
	if err != nil {
		return err
	}
	to, err := fieldpath.Parse(cmp.Or(r.To, text))
	if err != nil {
		return err
	}
	if form == formDefault {
		if kinds.Field(h, from) == nil {
			toHub, fromHub = fromHub, toHub
		}
		toHub.sets = append(toHub.sets, assignment{from, source{constant: r.Value}})
		fromHub.clears = append(fromHub.clears, from)
		return nil
	}
	there := assignment{to, source{from: from, change: change{form, r.Values}}}
	back := assignment{from, source{from: to, change: change{opposite[form], inverted(r.Values)}}}
	if form == formForEach {
		items := conversion.ConversionRule{Rules: r.Rules, ToHub: r.ToHub, FromHub: r.FromHub}
		toHubs, fromHubs, err := directions(&items, kinds.ItemOf(kinds.Field(s, from)), kinds.ItemOf(kinds.Field(h, to)))
		if err != nil {
			return err
		}
		there.value.items, back.value.items = &toHubs, &fromHubs
		there.value.change.form, back.value.change.form = formMove, formMove
	}
	toHub.sets, toHub.clears = append(toHub.sets, there), append(toHub.clears, from)
	fromHub.sets, fromHub.clears = append(fromHub.sets, back), append(fromHub.clears, to)
	return nil
}

func inverted(values map[string]string) map[string]string {
	if len(values) == 0 {
		return nil
	}
	back := map[string]string{}
	for from, to := range values {
		back[to] = from
	}
	return back
}

// composer puts directions in a row. Its problems name what cannot be said in one.
type composer struct {
	env      *rules.Env
	problems []string
}

func (c *composer) problem(format string, args ...any) {
	c.problems = append(c.problems, fmt.Sprintf(format, args...))
}

// compose is first and then second.
func (c *composer) compose(first, second direction) direction {
	made := direction{clears: append(append([]fieldpath.Path{}, first.clears...), second.clears...)}
	for _, a := range first.sets {
		if second.leaves(a.to) {
			made.sets = append(made.sets, a)
		}
	}
	for _, a := range second.sets {
		value, ok, err := c.through(first, a.value)
		if err != nil {
			c.problem("%s: %v", a.to, err)
		} else if ok {
			made.sets = append(made.sets, assignment{a.to, value})
		}
	}
	return made
}

// leaves reports whether a field stays what and where it is.
func (d direction) leaves(p fieldpath.Path) bool {
	for _, a := range d.sets {
		if p.HasPrefix(a.to) {
			return false
		}
	}
	for _, path := range d.clears {
		if p.HasPrefix(path) {
			return false
		}
	}
	return true
}

// through is a source that reads what an earlier direction has made, as one that reads what that has read. ok is false
// where that leaves nothing there.
func (c *composer) through(first direction, s source) (_ source, ok bool, err error) {
	switch {
	case s.expr != "":
		s.expr, err = c.substituted(first, s.expr)
		return s, true, err
	case s.from == nil:
		return s, true, nil
	}
	earlier, ok, err := first.at(s.from)
	if !ok || err != nil {
		return s, ok, err
	}
	switch {
	case s.items != nil && earlier.items != nil:
		items := c.compose(*earlier.items, *s.items)
		earlier.items = &items
		return earlier, true, nil
	case s.items != nil && earlier.from != nil && earlier.change.isNone():
		earlier.items = s.items
		return earlier, true, nil
	case s.items != nil, earlier.items != nil && !s.change.isNone():
		return s, false, fmt.Errorf("the items of %s are converted in two ways that cannot be said in one", s.from)
	}
	earlier, err = earlier.then(s.change)
	return earlier, true, err
}

// at is where a field of the result comes from. ok is false where nothing is left there.
func (d direction) at(p fieldpath.Path) (_ source, ok bool, err error) {
	for _, a := range d.sets {
		switch {
		case p.Equal(a.to):
			return a.value, true, nil
		case p.HasPrefix(a.to) && a.value.from != nil && a.value.items == nil && a.value.change.isNone():
			return source{from: slices.Concat(a.value.from, p[len(a.to):]), change: change{form: formMove}}, true, nil
		case p.Overlaps(a.to):
			return source{}, false, fmt.Errorf("%s comes from more than one field: %s is another", p, a.to)
		}
	}
	for _, path := range d.clears {
		switch {
		case p.HasPrefix(path):
			return source{}, false, nil
		case path.HasPrefix(p):
			return source{}, false, fmt.Errorf("%s comes without %s", p, path)
		}
	}
	return source{from: p, change: change{form: formMove}}, true, nil
}

// then is a source whose value is changed once more.
func (s source) then(next change) (source, error) {
	switch {
	case next.isNone():
		return s, nil
	case s.from == nil:
		text, err := s.text()
		return source{expr: next.text(text)}, err
	case s.change.isNone():
		s.change = next
		return s, nil
	case next.form == formMove && s.change.form == formMove:
		s.change.values = chained(s.change.values, next.values)
		return s, nil
	case next.form == opposite[s.change.form]:
		s.change = change{form: formMove}
		return s, nil
	}
	return s, fmt.Errorf("%s is changed in two ways that cannot be said in one", s.from)
}

// chained are the values of two changes in a row.
func chained(first, second map[string]string) map[string]string {
	made := maps.Clone(second)
	for _, to := range first {
		delete(made, to)
	}
	for from, to := range first {
		if last, ok := second[to]; ok {
			to = last
		}
		if made[from] = to; from == to {
			delete(made, from)
		}
	}
	return made
}

// text is an expression for the value of a source.
func (s source) text() (string, error) {
	switch {
	case s.expr != "":
		return "(" + s.expr + ")", nil
	case s.from != nil:
		text, err := selfField(s.from, len(s.from))
		return s.change.text(text), err
	}
	return translate.Literal(s.constant)
}

func selfField(p fieldpath.Path, optionalFrom int) (string, error) {
	text, ok := rules.SelfField(names(p), optionalFrom)
	if !ok {
		return "", fmt.Errorf("%s cannot be written in an expression", p)
	}
	return text, nil
}

func names(p fieldpath.Path) []string {
	fields := make([]string, len(p))
	for i, step := range p {
		fields[i] = step.Field
	}
	return fields
}

// text is the change of the value of an expression, as an expression.
func (c change) text(value string) string {
	switch c.form {
	case formWrap:
		return "[" + value + "]"
	case formUnwrap:
		return value + "[0]"
	}
	if len(c.values) == 0 {
		return value
	}
	pairs := make([]string, 0, len(c.values))
	for _, from := range slices.Sorted(maps.Keys(c.values)) {
		pairs = append(pairs, strconv.Quote(from)+": "+strconv.Quote(c.values[from]))
	}
	return fmt.Sprintf("{%s}[?%s].orValue(%s)", strings.Join(pairs, ", "), value, value)
}

// substituted is an expression over the result of a direction, as one over what that direction reads.
func (c *composer) substituted(first direction, expr string) (string, error) {
	return c.env.ReplaceReads(expr, func(r rules.FieldRead) (string, error) {
		p := fieldpath.New(r.Path...)
		if len(p) == 0 {
			return "", errors.New("the expression uses all of self")
		}
		s, ok, err := first.at(p)
		switch {
		case err != nil:
			return "", err
		case s.items != nil:
			return "", fmt.Errorf("the expression uses %s, whose items are converted too", p)
		case r.Has:
			return s.presence(p, ok)
		case ok && r.Optional:
			return s.optional(r.FirstOptional)
		case ok:
			return s.text()
		case r.Optional:
			return "optional.none()", nil
		}
		return "", fmt.Errorf("the expression uses %s, which is not there any more", p)
	})
}

// presence is an expression that asks whether a source has a value, in the place of has(self.…) with a path.
func (s source) presence(asked fieldpath.Path, ok bool) (string, error) {
	if s.from == nil {
		return strconv.FormatBool(ok), nil
	}
	begin := len(s.from)
	if !s.from[:begin-1].Equal(asked[:len(asked)-1]) {
		begin = 1 // what it is in may be missing
	}
	var asks []string
	for n := begin; n <= len(s.from); n++ {
		text, err := selfField(s.from[:n], n)
		if err != nil {
			return "", err
		}
		asks = append(asks, "has("+text+")")
	}
	if len(asks) == 1 {
		return asks[0], nil
	}
	return "(" + strings.Join(asks, " && ") + ")", nil
}

// optional is an expression whose value is an optional; firstToo: the first field, such as spec, may be absent.
func (s source) optional(firstToo bool) (string, error) {
	if s.from == nil {
		text, err := s.text()
		return "optional.of(" + text + ")", err
	}
	from := min(1, len(s.from)-1)
	if firstToo {
		from = 0
	}
	text, err := selfField(s.from, from)
	if err == nil && !s.change.isNone() {
		text += ".optMap(v, " + s.change.text("v") + ")"
	}
	return text, err
}
