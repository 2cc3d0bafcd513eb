package desired

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/corollary-dev/corollary/pkg/canonical"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/redact"
	"github.com/corollary-dev/corollary/pkg/render/parsing"
	"github.com/corollary-dev/corollary/pkg/rules"
	"github.com/corollary-dev/corollary/pkg/status"
)

// SiblingsChanged reports whether a live object that w was made from is another one now, for those who read it.
func (r *Renderer) SiblingsChanged(w *operator.Desired, sibling Sibling) bool {
	return slices.ContainsFunc(w.Siblings, func(read operator.SiblingRead) bool {
		return sumOf(r.Downstreams[read.Downstream].shownOf(sibling(read.Downstream, read.At))) != read.Sum
	})
}

// shownOf is what other downstreams can read of an object; nil if there is none. One that lacks all fields that are
// read is there.
func (d *Downstream) shownOf(kept map[string]any) map[string]any {
	if kept == nil {
		return nil
	}
	if shown := d.Shown.Cut(kept); shown != nil {
		return shown
	}
	return map[string]any{}
}

// sumOf is the digest of what is read of an object; zero if there is none.
func sumOf(shown map[string]any) canonical.Sum {
	if shown == nil {
		return canonical.Sum{}
	}
	return canonical.Digest(shown)
}

// siblingsOf gathers the objects that a downstream reads of others, by the names of these: one, or a map of several by
// their names. The error is a *waiting while one is missing. note, if not nil, takes what was read.
func (r *Renderer) siblingsOf(
	d *Downstream, objectsOf func(int) []operator.DesiredObject, sibling Sibling, note func(operator.SiblingRead),
) (map[string]any, error) {
	found := make(map[string]any, len(d.Siblings))
	for _, i := range d.Siblings {
		other := r.Downstreams[i]
		several, missing := map[string]any{}, []string(nil)
		for _, o := range objectsOf(i) {
			switch {
			case o.Err != nil:
				return nil, &operator.WaitingError{Message: fmt.Sprintf("downstream %s, which it reads, is not known: %s",
					other.Name, redact.Hide(other.HidesValues, o.Err))}
			case !o.Wanted && other.Several():
				continue
			case !o.Wanted:
				return nil, &operator.WaitingError{Message: fmt.Sprintf(
					"downstream %s, which it reads, is not wanted, since its when is false: give both the same when",
					other.Name)}
			}
			var shown map[string]any
			if sibling != nil {
				shown = other.shownOf(sibling(i, o.Target))
			}
			if note != nil {
				note(operator.SiblingRead{Downstream: i, At: o.Target, Sum: sumOf(shown)})
			}
			if shown == nil {
				missing = append(missing, o.Target.String())
			}
			several[other.NameOf(o.Target)] = shown
			found[other.Name] = shown
		}
		if len(missing) > 0 {
			return nil, &operator.WaitingError{Message: fmt.Sprintf("downstream %s, which it reads, is missing: %s", other.Name,
				status.Few(missing))}
		}
		if other.Several() {
			found[other.Name] = several
		}
	}
	return found, nil
}

// withSiblings returns in with what a downstream reads of others.
func (r *Renderer) withSiblings(
	d *Downstream, objectsOf func(int) []operator.DesiredObject, in Inputs, note func(operator.SiblingRead),
) (Inputs, error) {
	if len(d.Siblings) == 0 {
		return in, nil
	}
	found, err := r.siblingsOf(d, objectsOf, in.sibling, note)
	if err != nil {
		return in, err
	}
	in.downstreams, in.objects = found, maps.Clone(in.objects)
	if in.objects == nil {
		in.objects = map[string]any{}
	}
	for name, object := range found {
		in.objects[parsing.DownstreamKey(name)] = object
	}
	return in, nil
}

// ReadsSiblings reports whether an expression reads downstreams.
func (d *Downstream) ReadsSiblings(program *rules.Program) bool {
	paths, whole := program.Reads("downstreams")
	return whole || len(paths) > 0
}

// lacksField is err, or that one has to wait if an expression which reads other downstreams found a field missing.
func (d *Downstream) lacksField(err error) error {
	var failed *rules.EvalError
	if len(d.Siblings) > 0 && errors.As(err, &failed) && failed.LacksField() {
		return &operator.WaitingError{Message: redact.Hide(d.HidesValues, err).Error()}
	}
	return err
}
