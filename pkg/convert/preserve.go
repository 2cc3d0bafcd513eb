package convert

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime"
	kjson "sigs.k8s.io/json"

	"github.com/corollary-dev/corollary/pkg/convert/places"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/kinds"
)

// maxPreserved bounds what the annotation takes of the 256 KiB that an object's annotations have together.
const maxPreserved = 128 << 10

// errTooLarge refuses what would lose data: the stored object would not have them.
var errTooLarge = errors.New(
	"the fields that the target version does not have are larger than 128 KiB, or than what the other annotations " +
		"leave of 256 KiB: " +
		"make them smaller, or store a version that has them",
)

// errWasTooLarge refuses to write back an object that was read without the data that did not fit.
var errWasTooLarge = errors.New(
	"the object was read without fields that this version has no room for, since they are too large for an annotation: " +
		"writing it back would lose them; change it in the version that has them",
)

// kept are the data of one version that travel on an object of another one.
type kept struct {
	// Fields that would not survive the way there and back.
	Fields []places.Difference `json:"fields,omitempty"`
	// TooLarge: they do not fit.
	TooLarge bool `json:"tooLarge,omitempty"`
}

// preserving applies the rules and has what would not survive travel in the annotation; what travels there for the
// target version is put back, unless it was changed since, or would make the object invalid.
func (c *Converter) preserving(obj map[string]any, from, to string, p *pass) error {
	all := c.takeKept(obj)
	way := &wayBack{c, from, to, runtime.DeepCopyJSON(obj), p}
	if err := c.carry(obj, from, to, p); err != nil {
		return err
	}
	if mine := all[to]; mine != nil {
		// on the way to be read, it is forged: what is stored has all of it
		if mine.TooLarge && (c.stored == "" || to == c.stored) {
			return errWasTooLarge
		}
		c.putBack(obj, mine, way)
	}
	delete(all, to)

	fields, err := way.differences(obj)
	if err != nil {
		return fmt.Errorf("finding what %s has no room for, on the way back to %s: %w", to, from, err)
	}
	delete(all, from)
	fields = slices.DeleteFunc(fields, func(f places.Difference) bool { return !f.Path.IsValid() })
	if len(fields) > 0 {
		all[from] = &kept{Fields: fields}
	}
	return c.annotate(obj, all, from, to)
}

// maxPutBacks bounds in how many parts fields are put back: each costs as much as a conversion, and anybody may have
// written them.
const maxPutBacks = 8

// putBack restores fields that nobody has changed since, if the object is as valid with them as it is without and says
// the same in the version that it comes from: whoever writes the annotation must not be able to write a field that has
// rules. Those that do not keep no others from being restored, unless there are so many that they are tried in parts.
func (c *Converter) putBack(obj map[string]any, mine *kept, way *wayBack) {
	target := c.Version(way.to)
	coerced, items := runtime.DeepCopyJSON(obj), places.Items{}
	target.Coerce(coerced)
	fields := slices.DeleteFunc(mine.Fields, func(f places.Difference) bool {
		now, ok := f.Path.Get(coerced, items)
		unchanged := f.WasAbsent && !ok || !f.WasAbsent && ok && places.Equal(now, f.Was)
		return !unchanged
	})
	if len(fields) == 0 {
		return
	}
	invalid := errorsOf(way.pass.ctx, target, coerced)
	differing, _ := way.differences(obj) // after an error, all of it must come back
	lost := map[string]places.Difference{}
	for _, f := range differing {
		lost[f.Path.Key()] = f
	}
	put := func(fields []places.Difference) bool {
		restored, items := runtime.DeepCopyJSON(obj), places.Items{}
		for _, f := range fields {
			if f.IsAbsent {
				f.Path.Remove(restored, items)
			} else {
				f.Path.Set(restored, f.Is, items)
			}
		}
		target.Prune(restored) // as carry does: anybody may have named a field that is not declared
		if !kinds.AcceptsMetadata(restored) || !way.isSame(restored, lost) {
			return false
		}
		complete := runtime.DeepCopyJSON(restored)
		target.Coerce(complete)
		for problem := range errorsOf(way.pass.ctx, target, complete) {
			if !invalid[problem] {
				return false
			}
		}
		clear(obj)
		maps.Copy(obj, restored)
		return true
	}
	if put(fields) || len(fields) == 1 {
		return
	}
	for part := range slices.Chunk(fields, (len(fields)+maxPutBacks-1)/maxPutBacks) {
		put(part)
	}
}

// wayBack compares an object of the version to, converted back by the rules alone, with what it was in the version
// from.
type wayBack struct {
	*Converter
	from, to string
	before   map[string]any
	pass     *pass
}

// differences are the fields of the version from that obj does not bring back. obj stays as it is.
func (w *wayBack) differences(obj map[string]any) ([]places.Difference, error) {
	back, source := runtime.DeepCopyJSON(obj), w.Version(w.from)
	w.Version(w.to).Coerce(back) // as the API server does before it asks for the way back
	if err := w.carry(back, w.to, w.from, w.pass); err != nil {
		return nil, err
	}
	source.Coerce(back)
	return places.Differences(w.before, back, source.Structural), nil
}

// isSame reports whether obj brings back everything except what is lost already, by path.
func (w *wayBack) isSame(obj map[string]any, lost map[string]places.Difference) bool {
	differing, err := w.differences(obj)
	return err == nil && !slices.ContainsFunc(differing, func(d places.Difference) bool {
		f, ok := lost[d.Path.Key()]
		return !ok || f.WasAbsent != d.WasAbsent || !places.Equal(f.Was, d.Was)
	})
}

func errorsOf(ctx context.Context, v *kinds.Version, obj map[string]any) map[string]bool {
	found := map[string]bool{}
	for _, err := range v.Validate(ctx, obj) {
		found[string(err.Type)+err.Field] = true
	}
	return found
}

// takeKept reads the annotation and takes it off. What cannot be read stays where it is: nothing is known of it, and
// nothing is lost.
func (c *Converter) takeKept(obj map[string]any) map[string]*kept {
	all := c.takeAnnotation(obj)
	if version := c.takeFullMark(obj); version != "" {
		all[version] = &kept{TooLarge: true}
	}
	return all
}

// takeAnnotation removes the annotation, and returns what it says. The annotation may have the name that preserve had
// earlier: it is known by what it holds, which no other one does, and gets the current name when it is written again.
func (c *Converter) takeAnnotation(obj map[string]any) map[string]*kept {
	annotations, all := Annotations(obj), map[string]*kept{}
	for _, name := range c.carriers(annotations) {
		text, _ := annotations[name].(string)
		found := c.readKept(text)
		if found == nil {
			continue
		}
		delete(annotations, name)
		for version, k := range found {
			if all[version] == nil {
				all[version] = k
			}
		}
	}
	return all
}

// carriers are the annotations that may hold what travels, the current one first. One that a rule names holds what the
// rule says.
func (c *Converter) carriers(annotations map[string]any) []string {
	names := []string{c.Preserve}
	for _, name := range slices.Sorted(maps.Keys(annotations)) {
		text, _ := annotations[name].(string)
		version, _, _ := strings.Cut(strings.TrimPrefix(text, `{"`), `":{"`)
		isNamed := slices.ContainsFunc(c.Metadata, func(p fieldpath.Path) bool {
			return len(p) > 2 && p[1].Field == "annotations" && p[2].Field == name
		})
		if strings.HasPrefix(text, `{"`) && name != c.Preserve && c.Knows(version) == nil && !isNamed {
			names = append(names, name)
		}
	}
	return names
}

// readKept reads what annotate has written; nil if anything in it is not as that writes it.
func (c *Converter) readKept(text string) map[string]*kept {
	all := map[string]*kept{}
	if len(text) > maxPreserved {
		return nil
	}
	if strict, err := kjson.UnmarshalStrict([]byte(text), &all); err != nil || len(strict) > 0 || all == nil {
		return nil
	}
	for version, k := range all {
		if k == nil || c.Knows(version) != nil || slices.ContainsFunc(k.Fields, func(f places.Difference) bool {
			return !f.Path.IsValid()
		}) {
			return nil
		}
	}
	return all
}

// annotate writes what travels. from is the version that the object had, to the one that it has.
func (c *Converter) annotate(obj map[string]any, all map[string]*kept, from, to string) error {
	metadata, _ := obj["metadata"].(map[string]any)
	annotations := Annotations(obj)
	if len(all) == 0 {
		if annotations != nil && len(annotations) == 0 {
			delete(metadata, "annotations")
		}
		return nil
	}
	room := min(maxPreserved, roomFor(annotations)-len(c.Preserve))
	text, err := json.Marshal(all)
	if err == nil && len(text) > room {
		if to == c.stored {
			return errTooLarge
		}
		if text, err = json.Marshal(map[string]*kept{from: {TooLarge: true}}); len(text) > room {
			c.markFull(metadata, from) // with an error every list of the kind would fail
			return err
		}
	}
	if err != nil {
		return err
	}
	if annotations == nil {
		annotations = map[string]any{}
		metadata["annotations"] = annotations
	}
	annotations[c.Preserve] = string(text)
	return nil
}

// markFull marks an object whose annotations leave no room even for the mark that fields of a version are missing: by a
// label. Labels have no limit together, and the annotation's name and that of a version may be those of a label.
func (c *Converter) markFull(metadata map[string]any, version string) {
	labels, _ := metadata["labels"].(map[string]any)
	if labels == nil {
		labels = map[string]any{}
		metadata["labels"] = labels
	}
	labels[c.Preserve] = version
}

// takeFullMark removes the label of markFull, and returns the version that it names; empty for none.
func (c *Converter) takeFullMark(obj map[string]any) string {
	metadata, _ := obj["metadata"].(map[string]any)
	labels, _ := metadata["labels"].(map[string]any)
	version, ok := labels[c.Preserve].(string)
	if !ok || c.Knows(version) != nil {
		return ""
	}
	delete(labels, c.Preserve)
	if len(labels) == 0 {
		delete(metadata, "labels")
	}
	return version
}

// roomFor is how many bytes the API server takes beside the annotations that there are.
func roomFor(annotations map[string]any) int {
	room := validation.TotalAnnotationSizeLimitB
	for key, value := range annotations {
		text, _ := value.(string)
		room -= len(key) + len(text)
	}
	return room
}

// Preserved are the fields of a version that travel on an object of another one.
func (c *Converter) Preserved(obj map[string]any, version string) []places.Difference {
	text, ok := Annotations(obj)[c.Preserve].(string)
	var all map[string]*kept
	if !ok || json.Unmarshal([]byte(text), &all) != nil || all[version] == nil {
		return nil
	}
	return all[version].Fields
}

// WithoutPreserved is an object less what travels on it, which may be other things on each way.
func (c *Converter) WithoutPreserved(obj map[string]any) map[string]any {
	if c.Preserve == "" || len(Annotations(obj)) == 0 {
		return obj
	}
	obj = runtime.DeepCopyJSON(obj)
	c.takeAnnotation(obj)
	delete(Annotations(obj), c.Preserve)
	return obj
}
