// Package prove proves that what a conversion converts there and back is what it was: with objects that are made from
// the schemas, or with those that a cluster has. A certificate states what was proven. It makes no requests.
package prove

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/corollary-dev/corollary/pkg/convert"
	"github.com/corollary-dev/corollary/pkg/convert/generator"
	"github.com/corollary-dev/corollary/pkg/convert/places"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/rules"
	"github.com/corollary-dev/corollary/pkg/rules/cost"
)

// Options say how thoroughly a conversion is proven.
type Options struct {
	Seed uint64
	// Objects is how many are made for each pair and direction, besides the combinations; 10,000 by default.
	Objects int
}

// Proof is what was tried, for each pair of versions.
type Proof struct {
	Pairs []Pair
	// Unproven says what cannot be proven by objects, and what to add: a sentence each. Then nothing is claimed.
	Unproven []string
}

// Pair is what was tried of one way there and back.
type Pair struct {
	From, Via string
	// ByConstruction: the rules cannot lose anything, so that samples only confirm it.
	ByConstruction bool
	// Objects were valid and went there and back; Combinations of them have every two fields at all of their bounds.
	// Refused were made and are not valid.
	Objects, Combinations, Refused int
	// SampledFrom is how many combinations there are where these are more than could be tried: then some were chosen at
	// random, else 0.
	SampledFrom int
	// MaxCost is what converting one object to Via costs at most, in units of CEL. More than rules.CostPerObject is not
	// proven.
	MaxCost uint64
	// Kept counts, by field, the objects that the rules alone would have changed, and that survived by what travels in the
	// annotation.
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

// Prove makes objects of each version and takes them there and back through what the API server does in each version:
// it drops unknown fields, fills in defaults, and validates. It ends early where ctx does, with an error. A conversion
// that reads metadata which made objects do not have is an error, too.
func Prove(ctx context.Context, c *convert.Converter, o Options) (*Proof, error) {
	if len(c.Untried) > 0 {
		return nil, fmt.Errorf("not proven: %s, which is not tried: of metadata read only %s",
			strings.Join(c.Untried, "; "), strings.Join(convert.TriedMetadata, ", "))
	}
	if o.Objects == 0 {
		o.Objects = 10_000
	}
	proof := &Proof{}
	for _, name := range c.Versions() {
		s := c.Spokes[name]
		for _, pair := range [][2]*kinds.Version{{s.Version, c.Hub}, {c.Hub, s.Version}} {
			p := &prover{Converter: c, from: pair[0], via: pair[1], generator: makerFor(c, o.Seed, pair[1])}
			result, err := p.run(ctx, o.Objects)
			if err != nil {
				return nil, err
			}
			result.ByConstruction, result.MaxCost = s.Exact, c.MaxCost(s, pair[0] == s.Version)
			proof.Pairs = append(proof.Pairs, result)
		}
	}
	proof.Unproven = append(c.TooExpensive(), uncertain(c)...)
	return proof, nil
}

// Valid reports whether nothing was found to get lost, and nothing else can be.
func (p *Proof) Valid() bool {
	refuted := func(pair Pair) bool { return pair.Counterexample != nil || pair.Objects == 0 }
	return len(p.Unproven) == 0 && !slices.ContainsFunc(p.Pairs, refuted)
}

// A review takes at most 30 seconds, for which the API server waits, and a second is about rules.CostPerObject. Both
// kubectl and informers that read from etcd ask for 500 objects at once.
const (
	ReviewCost    = 30 * rules.CostPerObject
	ReviewObjects = 500
)

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
		return cost.Plus(toHub, fromHub)
	}
	return max(toHub, fromHub)
}

type prover struct {
	*convert.Converter
	from, via *kinds.Version
	generator *generator.Generator
	// large: objects are small but for one long list, map or text, which is as short as it can be. They are not made
	// smaller.
	large bool
	// kept and lost count objects by field, as in ProofPair.
	kept, lost map[string]int
}

// run makes combinations, random objects and large ones until one does not survive.
func (p *prover) run(ctx context.Context, objects int) (Pair, error) {
	p.kept, p.lost = map[string]int{}, map[string]int{}
	result := Pair{From: p.from.Name, Via: p.via.Name, Kept: p.kept, Lost: p.lost}
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
		obj, ok := p.generator.Next(ctx, p.from, chosen)
		if !ok {
			result.Refused++
			return ctx.Err() != nil, ctx.Err()
		}
		if p.Preserve != "" && p.generator.IsHeads() {
			p.leaveData(ctx, obj)
		}
		if chosen != nil {
			result.Combinations++
		}
		return survives(obj)
	}
	combinations, all := p.generator.Combinations(p.from, objects)
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
	defer func() { p.large = false }()
	for obj, isLarge := range p.generator.Sized(ctx, p.from, p.via) {
		p.large = isLarge
		if done, err := survives(obj); done {
			return result, err
		}
	}
	return result, ctx.Err()
}

// makerFor makes objects for a conversion. Of unknown fields, some have the names of fields of the other versions.
func makerFor(c *convert.Converter, seed uint64, others ...*kinds.Version) *generator.Generator {
	versions := []*kinds.Version{c.Hub}
	for _, name := range c.Versions() {
		versions = append(versions, c.Version(name))
	}
	return generator.New(generator.Options{
		Seed: seed, Kind: c.Kind, Namespaced: c.Namespaced, Metadata: c.Metadata, Literals: c.Literals,
		Versions: versions, Others: others,
	})
}

// leaveData gives an object the annotation of another one that came from the other version, as if everything in that
// had been edited since: what is in the object must win.
func (p *prover) leaveData(ctx context.Context, obj map[string]any) {
	earlier, ok := p.generator.Plain(ctx, p.via)
	if !ok || p.Convert(ctx, earlier, p.from.Name) != nil {
		return
	}
	if text, ok := convert.Annotations(earlier)[p.Preserve]; ok && convert.Annotations(obj) != nil {
		convert.Annotations(obj)[p.Preserve] = text
	}
}

// thereAndBack takes an object there and back; nil where it survives.
func (p *prover) thereAndBack(ctx context.Context, obj map[string]any) *Counterexample {
	there := runtime.DeepCopyJSON(obj)
	if err := p.Convert(ctx, there, p.via.Name); err != nil {
		return refusedBy(err, obj)
	}
	found := &Counterexample{Object: obj}
	generator.Store(p.via, there)
	fields := map[string]bool{} // each once, whatever items of lists they are in
	for _, f := range p.Preserved(there, p.from.Name) {
		fields[f.Path.Field()] = true
	}
	for name := range fields {
		p.kept[name]++
	}
	found.There = runtime.DeepCopyJSON(there)
	if errs := p.via.Validate(ctx, there); len(errs) > 0 {
		found.Problem = fmt.Sprintf("what it is converted to is not valid in %s: %v", p.via.Name, errs.ToAggregate())
		found.Shown = fmt.Sprintf("what it is converted to is not valid in %s: %s: %s", p.via.Name,
			errs[0].Field, errs[0].Type)
		return found
	}
	if err := p.Convert(ctx, there, p.from.Name); err != nil {
		found.Problem, found.Shown = err.Error(), withoutValues(err)
		return found
	}
	generator.Store(p.from, there)
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

// differ lists in what two objects of the version differ, less the losses that are acknowledged.
func (p *prover) differ(before, after map[string]any) []places.Difference {
	s := p.Spokes[p.from.Name]
	if s == nil {
		s = p.Spokes[p.via.Name]
	}
	lost := map[string]bool{}
	before, after = p.WithoutPreserved(before), p.WithoutPreserved(after)
	before, after = withMapsOf(before, after), withMapsOf(after, before)
	left := slices.DeleteFunc(places.Differences(before, after, p.from.Structural), func(f places.Difference) bool {
		isAcknowledged := slices.ContainsFunc(s.Lost, f.Path.IsIn)
		if isAcknowledged {
			lost[f.Path.Field()] = true
		}
		return isAcknowledged
	})
	for name := range lost {
		p.lost[name]++
	}
	return left
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
