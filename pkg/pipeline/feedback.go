package pipeline

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
)

// This file is about what an operator writes and reads itself: each write may then call for the next one.

// statusPart is a place of the status that the config has written.
type statusPart struct {
	name string
	path fieldpath.Path
}

func (s statusPart) String() string { return fmt.Sprintf("%s (%s)", s.name, s.path) }

// statusParts are all places of the status that this operator writes; none where it writes no status.
func (p *Pipeline) statusParts() []statusPart {
	if !p.StatusEnabled() {
		return nil
	}
	list := []statusPart{{"status.conditions", fieldpath.New("status", "conditions")}, {"the generation", fieldpath.New("status", "observedGeneration")}}
	if p.downstreamsPath != nil {
		list = append(list, statusPart{"status.downstreams", p.downstreamsPath})
	}
	for i, f := range p.fields {
		list = append(list, statusPart{fmt.Sprintf("status.fields[%d]", i), f.path})
	}
	return list
}

// readBy reports whether one of the paths, from the status on, reaches the place; an empty one is the whole status.
func (s statusPart) readBy(paths [][]string) bool {
	return slices.ContainsFunc(paths, func(fields []string) bool {
		return s.path.Overlaps(fieldpath.New(append([]string{"status"}, fields...)...))
	})
}

// OthersStatus is what other writers have in the upstream's status: without our conditions and what else this operator writes.
func (p *Pipeline) OthersStatus(upstream *unstructured.Unstructured) map[string]any {
	status, ok := upstream.Object["status"].(map[string]any)
	if !ok {
		return map[string]any{}
	}
	theirs := map[string]any{}
	for key, value := range status {
		theirs[key] = value
	}
	list, _ := status["conditions"].([]any)
	var others []any
	for _, item := range list {
		condition, _ := item.(map[string]any)
		if kind, _ := condition["type"].(string); !slices.Contains(p.ownTypes(), kind) {
			others = append(others, item)
		}
	}
	delete(theirs, "observedGeneration")
	if delete(theirs, "conditions"); len(others) > 0 {
		theirs["conditions"] = others
	}
	var ours []fieldpath.Path
	for _, part := range p.statusParts() {
		if part.path[1].Field != "conditions" {
			ours = append(ours, part.path)
		}
	}
	out, _ := drift.Without(map[string]any{"status": theirs}, ours)["status"].(map[string]any)
	return out
}

// ChangedFields names the status.fields that want gives another value than the upstream's status has.
func (p *Pipeline) ChangedFields(upstream *unstructured.Unstructured, want map[string]any) []string {
	var changed []string
	for i, f := range p.fields {
		have, _ := fieldpath.Get(upstream.Object, f.path)
		if value, ok := fieldpath.Get(map[string]any{"status": want}, f.path); ok && !equality.Semantic.DeepEqual(have, value) {
			changed = append(changed, statusPart{fmt.Sprintf("status.fields[%d]", i), f.path}.String())
		}
	}
	return changed
}

// MayBeDownstream reports whether input i is of a kind that this operator writes.
func (p *Pipeline) MayBeDownstream(i int) bool {
	gk := p.Inputs[i].Kind.GVK.GroupKind()
	return slices.ContainsFunc(p.Downstreams, func(d *Downstream) bool { return d.GVK().GroupKind() == gk })
}

// ReadsOwn reports whether anything may be read that this operator writes itself.
func (p *Pipeline) ReadsOwn() bool {
	return p.readsStatus || slices.ContainsFunc(p.Inputs, func(s *InputSource) bool { return p.MayBeDownstream(s.Index) })
}

// Feedback says how the desired state for downstream i can follow from what this operator writes itself. own are the inputs, by index,
// that are its downstreams.
func (p *Pipeline) Feedback(i int, own []int) string {
	d := p.Downstreams[i]
	var causes []string
	for _, k := range own {
		if p.reads(d, k) {
			causes = append(causes, fmt.Sprintf("the template reads its own output through input %s", p.Inputs[k].Name))
		}
	}
	for _, part := range p.statusParts() {
		if part.readBy(d.statusReads) {
			causes = append(causes, part.String()+" changes what the template reads")
		}
	}
	if len(causes) == 0 {
		return "its sources change with each write, and only then"
	}
	return strings.Join(causes, ", ")
}

// reads reports whether a downstream is made from input k, by itself or by way of downstreams that it reads.
func (p *Pipeline) reads(d *Downstream, k int) bool {
	from := []int{d.Index}
	for at := 0; at < len(from); at++ {
		d := p.Downstreams[from[at]]
		if d.inputs.has(k) || d.whenInputs.has(k) || d.itemsInputs.has(k) || p.validatorInputs.has(k) {
			return true
		}
		for _, sibling := range d.siblings {
			if !slices.Contains(from, sibling) {
				from = append(from, sibling)
			}
		}
	}
	return false
}

// HashKey is where objects have the hash.
func (p *Pipeline) HashKey() fieldpath.Path {
	if p.hashKey.Label != "" {
		return fieldpath.New("metadata", "labels", p.hashKey.Label)
	}
	return fieldpath.New("metadata", "annotations", p.hashKey.Annotation)
}
