package convert

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/corollary-dev/corollary/pkg/kinds"
)

// ProofOptions say how thoroughly a conversion is proven.
type ProofOptions struct {
	Seed uint64
	// Objects is how many are made for each pair and direction, besides the combinations; 10,000 by default.
	Objects int
}

// Proof is what was tried, for each pair of versions.
type Proof struct {
	Pairs []ProofPair
	// Unproven says what cannot be proven by objects, and what to add: a sentence each. Then nothing is claimed.
	Unproven []string
}

// ProofPair is what was tried of one way there and back.
type ProofPair struct {
	From, Via string
	// ByConstruction: the rules cannot lose anything, so that samples only confirm it.
	ByConstruction bool
	// Objects were valid and went there and back; Combinations of them have every two fields at all of their bounds. Refused were made
	// and are not valid.
	Objects, Combinations, Refused int
	// SampledFrom is how many combinations there are where these are more than could be tried: then some were chosen at random, else 0.
	SampledFrom int
	// MaxCost is what converting one object to Via costs at most, in units of CEL. More than rules.CostPerObject is not proven.
	MaxCost uint64
	// Kept counts, by field, the objects that the rules alone would have changed, and that survived by what travels in the annotation.
	Kept map[string]int
	// Lost counts, by field, the objects that lose what the conversion acknowledges as lost.
	Lost map[string]int
	// Counterexample is the smallest object found that does not survive; nil where all do.
	Counterexample *Counterexample
}

// Counterexample is an object that does not survive.
type Counterexample struct {
	Object map[string]any
	// There is the object in the other version, and Back what comes back; nil where it does not get there.
	There, Back map[string]any
	// Problem says what is wrong: which fields differ, or why the object is refused.
	Problem string
	// Shown is Problem without values of the object.
	Shown string
}

// Prove makes objects of each version and takes them there and back through what the API server does in each version: it drops
// unknown fields, fills in defaults, and validates. It ends early where ctx does, with an error. A conversion that reads metadata which
// made objects do not have is an error, too.
func (c *Converter) Prove(ctx context.Context, o ProofOptions) (*Proof, error) {
	if len(c.untried) > 0 {
		return nil, fmt.Errorf("not proven: %s, which is not tried: of metadata read only %s",
			strings.Join(c.untried, "; "), strings.Join(triedMetadata, ", "))
	}
	if o.Objects == 0 {
		o.Objects = 10_000
	}
	proof := &Proof{}
	for _, name := range c.Versions() {
		s := c.spokes[name]
		for _, pair := range [][2]*kinds.Version{{s.version, c.hub}, {c.hub, s.version}} {
			p := &prover{Converter: c, from: pair[0], via: pair[1], generator: c.generator(o.Seed, pair[1])}
			result, err := p.run(ctx, o.Objects)
			if err != nil {
				return nil, err
			}
			result.ByConstruction, result.MaxCost = s.exact, c.maxCost(s, pair[0] == s.version)
			proof.Pairs = append(proof.Pairs, result)
		}
	}
	proof.Unproven = append(c.tooExpensive(), c.uncertain()...)
	return proof, nil
}

// generator makes objects for a conversion. Of unknown fields, some have the names of fields of the other versions.
func (c *Converter) generator(seed uint64, others ...*kinds.Version) *generator {
	g := &generator{
		random:       rand.New(rand.NewPCG(seed, 1)),
		distinctions: c.distinctions(),
		unknown:      map[string]*structuralschema.Structural{},
	}
	var collect func(s *structuralschema.Structural, depth int)
	collect = func(s *structuralschema.Structural, depth int) {
		for _, name := range slices.Sorted(maps.Keys(s.Properties)) { // one seed gives the same objects
			property := s.Properties[name]
			if depth > 0 && g.unknown[name] == nil {
				g.unknown[name] = &property
			}
			collect(&property, depth+1)
		}
		if s.Items != nil {
			collect(s.Items, depth+1)
		}
	}
	for _, v := range others {
		collect(v.Structural, 0)
	}
	return g
}

// Valid reports whether nothing was found to get lost, and nothing else can be.
func (p *Proof) Valid() bool {
	refuted := func(pair ProofPair) bool { return pair.Counterexample != nil || pair.Objects == 0 }
	return len(p.Unproven) == 0 && !slices.ContainsFunc(p.Pairs, refuted)
}

// MaxCost is what converting one object costs at most, in units of CEL: by way of the hub, two pairs.
func (p *Proof) MaxCost() uint64 {
	var toHub, fromHub uint64
	for i, pair := range p.Pairs { // each spoke has two: to the hub and from it
		if i%2 == 0 {
			toHub = max(toHub, pair.MaxCost)
		} else {
			fromHub = max(fromHub, pair.MaxCost)
		}
	}
	if len(p.Pairs) > 2 {
		return plus(toHub, fromHub)
	}
	return max(toHub, fromHub)
}

type prover struct {
	*Converter
	from, via *kinds.Version
	generator *generator
	// large: objects are small but for one long list, map or text, which is as short as it can be. They are not made smaller.
	large bool
	// kept and lost count objects by field, as in ProofPair.
	kept, lost map[string]int
}

// run makes combinations, random objects and large ones until one does not survive.
func (p *prover) run(ctx context.Context, objects int) (ProofPair, error) {
	p.kept, p.lost = map[string]int{}, map[string]int{}
	result := ProofPair{From: p.from.Name, Via: p.via.Name, Kept: p.kept, Lost: p.lost}
	survives := func(obj map[string]any) (done bool, err error) {
		result.Objects++
		if found := p.thereAndBack(ctx, obj); found != nil {
			result.Kept, result.Lost = maps.Clone(p.kept), maps.Clone(p.lost) // shrinking converts more objects
			if result.Counterexample = found; !p.large {
				result.Counterexample = p.shrink(ctx, obj, found, p.thereAndBack)
			}
			return true, nil
		}
		return ctx.Err() != nil, ctx.Err()
	}
	try := func(chosen map[string]int) (done bool, err error) {
		p.generator.chosen, p.generator.uniform = chosen, chosen == nil && p.generator.random.IntN(10) == 0
		p.generator.last = p.generator.random.IntN(2) == 0
		obj, ok := p.make(ctx)
		if !ok {
			result.Refused++
			return ctx.Err() != nil, ctx.Err()
		}
		if p.preserve != "" && p.generator.random.IntN(2) == 0 {
			p.leaveData(ctx, obj)
		}
		if chosen != nil {
			result.Combinations++
		}
		return survives(obj)
	}
	combinations, all := p.combinations(objects)
	if all > objects {
		result.SampledFrom = all
	}
	for chosen := range combinations {
		if done, err := try(chosen); done {
			return result, err
		}
	}
	for range objects {
		if done, err := try(nil); done {
			return result, err
		}
	}
	if done, err := p.everyCombination(ctx, survives); done {
		return result, err
	}
	return result, p.everySize(ctx, survives)
}

// combinations are all pairs of values of two fields, and how many these are. Of more than maxPairs so many are chosen at random.
func (p *prover) combinations(maxPairs int) (chosen func(func(map[string]int) bool), all int) {
	fields := p.generator.choices(p.from.Structural, "", 0)
	before := 0
	for _, f := range fields {
		all += f.options() * (before + 1)
		before += f.options()
	}
	if all <= maxPairs {
		return allPairs(fields), all
	}
	return func(yield func(map[string]int) bool) {
		random := p.generator.random
		for range maxPairs {
			a, b := fields[random.IntN(len(fields))], fields[random.IntN(len(fields))]
			if !yield(map[string]int{a.at: a.option(random.IntN(a.options())), b.at: b.option(random.IntN(b.options()))}) {
				return
			}
		}
	}, all
}

// allPairs are all values of one field, and all pairs of values of two.
func allPairs(fields []fieldChoice) func(func(map[string]int) bool) {
	return func(yield func(map[string]int) bool) {
		for i, a := range fields {
			for x := range a.options() {
				if !yield(map[string]int{a.at: a.option(x)}) {
					return
				}
				for _, b := range fields[i+1:] {
					for y := range b.options() {
						if !yield(map[string]int{a.at: a.option(x), b.at: b.option(y)}) {
							return
						}
					}
				}
			}
		}
	}
}

// make makes an object as the API server would have stored it. ok is false where it would have refused it.
func (p *prover) make(ctx context.Context) (obj map[string]any, ok bool) {
	obj, ok = p.generator.value(p.from.Structural, "", 0).(map[string]any)
	return obj, ok && p.stored(ctx, obj)
}

// stored makes of an object what the API server stores, and reports whether it takes it.
func (p *prover) stored(ctx context.Context, obj map[string]any) bool {
	p.head(obj, p.from.Name)
	store(p.from, obj)
	return len(p.from.Validate(ctx, obj)) == 0
}

// leaveData gives an object the annotation of another one that came from the other version, as if everything in that had been edited
// since: what is in the object must win.
func (p *prover) leaveData(ctx context.Context, obj map[string]any) {
	other := &generator{random: p.generator.random, values: p.generator.values, distinctions: p.generator.distinctions}
	earlier, ok := other.value(p.via.Structural, "", 0).(map[string]any)
	if !ok {
		return
	}
	p.head(earlier, p.via.Name)
	store(p.via, earlier)
	if len(p.via.Validate(ctx, earlier)) > 0 || p.Convert(ctx, earlier, p.from.Name) != nil {
		return
	}
	if text, ok := annotationsOf(earlier)[p.preserve]; ok && annotationsOf(obj) != nil {
		annotationsOf(obj)[p.preserve] = text
	}
}

// thereAndBack takes an object there and back; nil where it survives.
func (p *prover) thereAndBack(ctx context.Context, obj map[string]any) *Counterexample {
	found := &Counterexample{Object: obj}
	there := runtime.DeepCopyJSON(obj)
	if err := p.Convert(ctx, there, p.via.Name); err != nil {
		found.Problem, found.Shown = err.Error(), withoutValues(err)
		return found
	}
	store(p.via, there)
	p.count(there)
	found.There = runtime.DeepCopyJSON(there)
	if errs := p.via.Validate(ctx, there); len(errs) > 0 {
		found.Problem = fmt.Sprintf("what it is converted to is not valid in %s: %v", p.via.Name, errs.ToAggregate())
		found.Shown = fmt.Sprintf("what it is converted to is not valid in %s: %s: %s", p.via.Name, errs[0].Field, errs[0].Type)
		return found
	}
	if err := p.Convert(ctx, there, p.from.Name); err != nil {
		found.Problem, found.Shown = err.Error(), withoutValues(err)
		return found
	}
	store(p.from, there)
	found.Back = there
	if fields := p.differ(obj, there); len(fields) > 0 {
		f := fields[0]
		found.Problem = fmt.Sprintf(
			"%s is %s, and after the way to %s and back it is %s",
			f.Path,
			shown(f.Is, f.IsAbsent),
			p.via.Name,
			shown(f.Was, f.WasAbsent),
		)
		found.Shown = fmt.Sprintf("%s is different after the way from %s to %s and back", f.Path, p.from.Name, p.via.Name)
		return found
	}
	return nil
}

// count notes the fields of an object that travel in the annotation: each once, whatever items of lists they are in.
func (p *prover) count(there map[string]any) {
	text, ok := annotationsOf(there)[p.preserve].(string)
	var all map[string]*kept
	if !ok || json.Unmarshal([]byte(text), &all) != nil || all[p.from.Name] == nil {
		return
	}
	fields := map[string]bool{}
	for _, f := range all[p.from.Name].Fields {
		fields[f.Path.field()] = true
	}
	for name := range fields {
		p.kept[name]++
	}
}

// differ lists in what two objects of the version differ, less the losses that are acknowledged.
func (p *prover) differ(before, after map[string]any) []keptField {
	s := p.spokes[p.from.Name]
	if s == nil {
		s = p.spokes[p.via.Name]
	}
	lost := map[string]bool{}
	before, after = p.withoutData(before), p.withoutData(after)
	before, after = withMapsOf(before, after), withMapsOf(after, before)
	left := slices.DeleteFunc(differences(before, after, p.from.Structural), func(f keptField) bool {
		isAcknowledged := slices.ContainsFunc(s.lost, f.Path.isIn)
		if isAcknowledged {
			lost[f.Path.field()] = true
		}
		return isAcknowledged
	})
	for name := range lost {
		p.lost[name]++
	}
	return left
}

// withoutData is an object less what travels on it, which may be other things on each way.
func (p *prover) withoutData(obj map[string]any) map[string]any {
	if p.preserve == "" || len(annotationsOf(obj)) == 0 {
		return obj
	}
	obj = runtime.DeepCopyJSON(obj)
	p.takeAnnotation(obj)
	delete(annotationsOf(obj), p.preserve)
	return obj
}

func shown(value any, isAbsent bool) string {
	if isAbsent {
		return "absent"
	}
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(text)
}
