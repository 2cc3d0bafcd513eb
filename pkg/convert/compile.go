package convert

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/corollary-dev/corollary/pkg/config/conversion"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/rules"
)

// Options are what a conversion is compiled against.
type Options struct {
	Kind schema.GroupKind
	// Versions of the kind, of which every one that is served must be converted. The API server converts to the others
	// too, for those who have applied in them.
	Versions []*kinds.Version
	// Stored is the version in which objects are stored; empty where that is not known.
	Stored string
	// Namespaced is false for a cluster-scoped kind.
	Namespaced bool
	// Version is the API server's, whose CEL is spoken; nil for the newest.
	Version *version.Version
	// Partial leaves out versions that only one of the conversion and Versions has, as they do while a version comes or
	// goes.
	Partial bool
}

// Problem is something wrong with a conversion.
type Problem struct {
	// Path in the conversion: spokes[0].rules[1].move.
	Path    string
	Message string
}

// Compile checks a conversion against the schemas of both sides of every rule, and prepares it. It returns all
// problems, each with the place that has to be changed.
func Compile(config *conversion.Conversion, o Options) (*Converter, []*Problem) {
	c := &compiler{options: o, versions: map[string]*kinds.Version{}}
	for _, v := range o.Versions {
		c.versions[v.Name] = v
	}
	made := c.converter(config)
	if len(c.problems) > 0 {
		return nil, c.problems
	}
	made.Literals, made.Metadata, made.Untried = c.found, c.metadata, c.untried
	made.NeedsMetadata = made.Preserve != "" || len(c.metadata) > 0 || c.readsMetadata
	return made, nil
}

type compiler struct {
	options  Options
	versions map[string]*kinds.Version
	problems []*Problem
	found    []any            // the literals of rules and expressions
	preserve string           // the annotation of preserve
	metadata []fieldpath.Path // the labels and annotations that they name
	// readsMetadata: expressions read some, labels or others.
	readsMetadata bool
	untried       []string   // the expressions that read metadata which made objects do not have
	floats        []FloatUse // of the spoke that is compiled
}

func (c *compiler) problem(path, format string, args ...any) {
	c.problems = append(c.problems, &Problem{path, fmt.Sprintf(format, args...)})
}

func (c *compiler) converter(config *conversion.Conversion) *Converter {
	made := &Converter{Kind: c.options.Kind, Spokes: map[string]*Spoke{}, stored: c.options.Stored,
		Namespaced: c.options.Namespaced}
	if made.Hub = c.served("hub", config.Hub); made.Hub == nil {
		return nil
	}
	if config.Preserve != nil {
		if made.Preserve = config.Preserve.Annotation; made.Preserve == "" {
			c.problem("preserve.annotation", "required value is missing: set the name of an annotation")
		}
		c.preserve = made.Preserve
	}
	for i := range config.Spokes {
		at := fmt.Sprintf("spokes[%d]", i)
		from := &config.Spokes[i]
		if c.options.Partial && c.versions[from.Version] == nil {
			continue
		}
		v := c.served(at+".version", from.Version)
		switch {
		case v == nil:
		case v == made.Hub:
			c.problem(at+".version", "%s is the hub: remove it from spokes", v.Name)
		case made.Spokes[v.Name] != nil:
			c.problem(at+".version", "%s is listed twice", v.Name)
		default:
			made.Spokes[v.Name] = c.spoke(at, from, v, made.Hub, made.Preserve != "")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.versions)) {
		if made.Spokes[name] == nil && name != made.Hub.Name && c.versions[name].Served && !c.options.Partial {
			c.problem("spokes", "version %s is served and is missing: add it, or stop serving it", name)
		}
	}
	return made
}

func (c *compiler) served(path, name string) *kinds.Version {
	v := c.versions[name]
	switch {
	case name == "":
		c.problem(path, "required value is missing: set one of %s", slices.Sorted(maps.Keys(c.versions)))
	case v == nil:
		c.problem(path, "%s does not have version %q: it has %s", c.options.Kind, name, slices.Sorted(maps.Keys(c.versions)))
	}
	return v
}

func (c *compiler) spoke(at string, from *conversion.Spoke, v, hub *kinds.Version, preserves bool) *Spoke {
	made := &Spoke{Version: v}
	spokeCover, hubCover := newCover(withMetadata(v.Structural)), newCover(withMetadata(hub.Structural))
	spokeCover.version, hubCover.version, c.floats = v, hub, nil
	before := len(c.metadata)
	made.toHub, made.fromHub = c.rules(at+".rules", from.Rules, spokeCover, hubCover)
	made.toHub = append(made.toHub, c.steps(at+".toHub", from.ToHub, spokeCover, hubCover)...)
	made.fromHub = append(made.fromHub, c.steps(at+".fromHub", from.FromHub, hubCover, spokeCover)...)
	for i, lost := range from.Lost {
		where := fmt.Sprintf("%s.lost[%d]", at, i)
		p, ok := c.path(where+".path", lost.Path)
		if lost.Reason == "" {
			c.problem(where+".reason", "required value is missing: say why it may be lost")
		}
		if !ok {
			continue
		}
		inSpoke, inHub := kinds.Field(spokeCover.schema, p) != nil, kinds.Field(hubCover.schema, p) != nil
		if !inSpoke && !inHub {
			c.problem(where+".path", "neither %s nor %s has %s", v.Name, hub.Name, p)
		}
		made.Lost = append(made.Lost, p)
		spokeCover.take(p, coverLost)
		hubCover.take(p, coverLost)
	}
	a := &comparison{compiler: c, at: at, preserves: preserves,
		exact: len(from.ToHub)+len(from.FromHub)+len(from.Lost) == 0 && len(c.metadata) == before &&
			reflect.DeepEqual(v.Structural.Properties["metadata"], hub.Structural.Properties["metadata"]) &&
			(len(from.Rules) == 0 || !keepsUnknown(v.Structural) && !keepsUnknown(hub.Structural))}
	a.compare(spokeCover, hubCover, v, hub)
	made.Exact, made.Floats = a.exact, c.floats
	return made
}

func (c *compiler) path(at, text string) (fieldpath.Path, bool) {
	if text == "" {
		c.problem(at, "required value is missing: set the path of a field, such as .spec.size")
		return nil, false
	}
	p, err := fieldpath.Parse(text)
	if err != nil {
		c.problem(at, "%v", err)
		return nil, false
	}
	if slices.ContainsFunc(p, func(s fieldpath.Step) bool { return s.Kind != fieldpath.FieldStep }) {
		c.problem(at, "%s: only fields can be named: for the items of a list use forEach", text)
		return nil, false
	}
	return p, true
}

// place is path for one that a conversion changes. item: it begins at an item of a list.
func (c *compiler) place(at, text string, item bool) (fieldpath.Path, bool) {
	p, ok := c.path(at, text)
	if ok && !item && !mayChange(p) {
		c.problem(at, "%s cannot be converted: the API server lets a conversion change spec, status and the like, and of "+
			"metadata labels and "+
			"annotations", text)
		return nil, false
	}
	if ok && !item {
		c.names(p)
	}
	if ok && !item && c.preserve != "" && len(p) > 2 && p[1].Field == "annotations" && p[2].Field == c.preserve {
		c.problem(at, "%s is the annotation of preserve: use another one", text)
		return nil, false
	}
	return p, ok
}

// names notes a label or an annotation that the conversion reads or changes.
func (c *compiler) names(p fieldpath.Path) {
	if p[0].Field == "metadata" && mayChange(p) {
		c.metadata = append(c.metadata, p)
	}
}

// reads notes what of metadata an expression reads.
func (c *compiler) reads(at string, paths [][]string, whole bool) {
	if whole {
		c.readsMetadata = true
		c.untried = append(c.untried, at+" reads the whole object, with all of .metadata")
	}
	for _, path := range paths {
		p := fieldpath.New(path...)
		c.names(p)
		c.readsMetadata = c.readsMetadata || path[0] == "metadata"
		if path[0] == "metadata" && (len(path) == 1 || !slices.Contains(TriedMetadata, path[1])) {
			c.untried = append(c.untried, fmt.Sprintf("%s reads %s", at, p))
		}
	}
}

func mayChange(p fieldpath.Path) bool {
	switch p[0].Field {
	case "apiVersion", "kind":
		return false
	case "metadata":
		return len(p) > 2 && (p[1].Field == "labels" || p[1].Field == "annotations")
	}
	return true
}

// rules compiles the rules that state both directions.
func (c *compiler) rules(at string, list []conversion.ConversionRule, spoke, hub *cover) (toHub, fromHub []operation) {
	for i := range list {
		there, back := c.rule(fmt.Sprintf("%s[%d]", at, i), &list[i], spoke, hub)
		if there != nil {
			toHub = append(toHub, there)
		}
		if back != nil {
			fromHub = append(fromHub, back)
		}
	}
	return toHub, fromHub
}

func (c *compiler) rule(at string, r *conversion.ConversionRule, spoke, hub *cover) (toHub, fromHub operation) {
	forms := map[string]string{}
	for name, path := range map[string]string{"move": r.Move, "wrap": r.Wrap, "unwrap": r.Unwrap,
		"forEach": r.ForEach, "default": r.Default} {
		if path != "" {
			forms[name] = path
		}
	}
	if len(forms) != 1 {
		c.problem(at, "exactly one of move, wrap, unwrap, forEach and default must be set, not %d", len(forms))
		return nil, nil
	}
	for name, text := range forms {
		c.misplaced(at, name, r)
		from, ok := c.place(at+"."+name, text, spoke.item)
		to, okTo := c.place(at+".to", cmp.Or(r.To, text), spoke.item)
		if !ok || !okTo {
			return nil, nil
		}
		if name == "default" {
			return c.constant(at, from, r, spoke, hub)
		}
		s, h := c.pair(at, name, from, to, spoke, hub)
		if s == nil || h == nil {
			return nil, nil
		}
		there, back := transfer{from: from, to: to}, transfer{from: to, to: from}
		switch name {
		case "wrap":
			there.change, back.change = wrapped, unwrapped
			return &there, &back
		case "unwrap":
			there.change, back.change = unwrapped, wrapped
			return &there, &back
		case "forEach":
			return c.each(at, there, back, r, spoke, hub, s, h)
		}
		if len(r.Values) > 0 {
			spoke.entries[from.String()].changed = true
			c.literals(r.Values)
			there.change, back.change = c.values(at+".values", r.Values)
		}
		return &there, &back
	}
	return nil, nil
}

// misplaced finds keys of a rule that say nothing in its form.
func (c *compiler) misplaced(at, form string, r *conversion.ConversionRule) {
	for _, key := range []struct {
		name, form string
		set        bool
	}{
		{"values", "move", len(r.Values) > 0},
		{"value", "default", r.Value != nil},
		{"rules", "forEach", len(r.Rules) > 0},
		{"toHub", "forEach", len(r.ToHub) > 0},
		{"fromHub", "forEach", len(r.FromHub) > 0},
	} {
		if key.set && key.form != form {
			c.problem(at+"."+key.name, "it belongs to %s, and this rule is %s: remove it", key.form, form)
		}
	}
	if form == "default" && r.To != "" {
		c.problem(at+".to", "default names one field: remove to")
	}
}

// pair takes the places of a rule, and returns their schemas; one is nil after a problem.
func (c *compiler) pair(
	at, name string, from, to fieldpath.Path, spoke, hub *cover,
) (s, h *structuralschema.Structural) {
	if s = kinds.Field(spoke.schema, from); s == nil {
		c.problem(at+"."+name, "the spoke does not have %s", from)
	}
	if h = kinds.Field(hub.schema, to); h == nil {
		c.problem(at+".to", "the hub does not have %s", to)
	}
	if s == nil || h == nil {
		return s, h
	}
	ok := true
	for side, taken := range map[string]error{name: spoke.pair(from, to, name), "to": hub.pair(to, from, name)} {
		if taken != nil {
			ok = false
			c.problem(at+"."+side, "%v", taken)
		}
	}
	if !ok {
		return nil, nil
	}
	return s, h
}

// literals notes what a rule makes a difference for.
func (c *compiler) literals(values map[string]string) {
	for _, from := range slices.Sorted(maps.Keys(values)) {
		c.found = append(c.found, from, values[from])
	}
}

func (c *compiler) values(at string, there map[string]string) (func(any) (any, bool), func(any) (any, bool)) {
	back := map[string]string{}
	for _, from := range slices.Sorted(maps.Keys(there)) {
		if other, ok := back[there[from]]; ok {
			c.problem(at, "%q and %q both become %q: on the way back only one of them can be meant", other, from, there[from])
		}
		back[there[from]] = from
	}
	return renamed(there), renamed(back)
}

// constant compiles a default, for the side that has the field.
func (c *compiler) constant(
	at string, p fieldpath.Path, r *conversion.ConversionRule, spoke, hub *cover,
) (toHub, fromHub operation) {
	inSpoke, inHub := kinds.Field(spoke.schema, p) != nil, kinds.Field(hub.schema, p) != nil
	switch {
	case inSpoke == inHub:
		c.problem(at+".default", "exactly one of the versions must have %s", p)
	case inHub:
		hub.take(p, coverDefault)
		return &constant{p, r.Value}, &removal{p}
	default:
		spoke.take(p, coverDefault)
		return &removal{p}, &constant{p, r.Value}
	}
	return nil, nil
}

// each compiles a forEach.
func (c *compiler) each(
	at string, there, back transfer, r *conversion.ConversionRule, spoke, hub *cover, s, h *structuralschema.Structural,
) (toHub, fromHub operation) {
	spokeItem, hubItem := kinds.ItemOf(s), kinds.ItemOf(h)
	if spokeItem == nil || hubItem == nil {
		c.problem(at+".forEach", "both versions must have a list or a map of objects there")
		return nil, nil
	}
	items := [2]*cover{newCover(spokeItem), newCover(hubItem)}
	for i, outer := range []*cover{spoke, hub} {
		items[i].item, items[i].version = true, outer.version
		items[i].above = slices.Concat(outer.above, []fieldpath.Path{there.from, there.to}[i])
	}
	entry := spoke.entries[there.from.String()]
	entry.items, entry.changed = &items, len(r.ToHub)+len(r.FromHub) > 0
	toHubs, fromHubs := c.rules(at+".rules", r.Rules, items[0], items[1])
	toHubs = append(toHubs, c.steps(at+".toHub", r.ToHub, items[0], items[1])...)
	fromHubs = append(fromHubs, c.steps(at+".fromHub", r.FromHub, items[1], items[0])...)
	return &each{there, toHubs, s}, &each{back, fromHubs, h}
}

// steps compiles the steps of one direction. In them self is what from covers: an object, or an item.
func (c *compiler) steps(at string, list []conversion.ConversionStep, from, to *cover) []operation {
	if len(list) == 0 {
		return nil
	}
	env, err := rules.NewEnv(rules.EnvOptions{Version: c.options.Version,
		Self: kinds.OpenAPI(from.schema), SelfItem: from.item})
	if err != nil {
		c.problem(at, "%v", err)
		return nil
	}
	var made []operation
	for i, step := range list {
		where := fmt.Sprintf("%s[%d]", at, i)
		switch {
		case (step.Set != "") == (len(step.Remove) > 0):
			c.problem(where, "exactly one of set and remove must be set")
			continue
		case step.Set != "" && step.Expression == "":
			c.problem(where+".expression", "required value is missing: set a CEL expression over self")
			continue
		}
		for n, text := range step.Remove {
			if p, ok := c.place(fmt.Sprintf("%s.remove[%d]", where, n), text, from.item); ok {
				made = append(made, &removal{p})
			}
		}
		if step.Set == "" {
			continue
		}
		p, ok := c.place(where+".set", step.Set, from.item)
		program, err := env.Any(step.Expression, rules.Upstream, "")
		var wrong *rules.CompileError
		if errors.As(err, &wrong) {
			c.problem(where+".expression", "%v", wrong)
		}
		if !ok || err != nil {
			continue
		}
		if kinds.Field(to.schema, p) == nil {
			c.problem(where+".set", "the target version does not have %s", p)
		}
		to.take(p, coverComputed)
		c.found = append(c.found, program.Literals()...)
		paths, whole := program.Reads("self")
		from.readBy(paths, whole)
		if !from.item {
			c.reads(where+".expression", paths, whole)
		}
		if program.ComputesFloats() {
			c.floats = append(c.floats, from.floats(where+".expression", paths, whole))
		}
		made = append(made, &computed{p, program, where + ".expression"})
	}
	return made
}

// TriedMetadata are the fields of metadata that made objects have.
var TriedMetadata = []string{"name", "generateName", "namespace", "labels", "annotations"}
