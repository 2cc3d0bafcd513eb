package config

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// adopt checks the managers whose fields become ours along with an object that is taken over.
func (v *validator) adopt(at string, d *Downstream) {
	if d.Adopt == nil {
		return
	}
	path := at + ".adopt.fieldManagers"
	if len(d.Adopt.FieldManagers) == 0 {
		v.add(path, "name the writers as metadata.managedFields does, or leave out adopt", "required value is missing")
	}
	for i, name := range d.Adopt.FieldManagers {
		here := fmt.Sprintf("%s[%d]", path, i)
		switch j := slices.Index(d.Adopt.FieldManagers, name); {
		case !v.required(here, name, "name a writer as metadata.managedFields does"):
		case j < i:
			v.add(here, "remove one of them", "%q is already item %d", clip(name), j)
		case name == v.Conventions.FieldManager:
			v.add(here, "remove it", "%q is this operator's own field manager", clip(name))
		default:
			v.managerName(here, name)
		}
	}
	if d.AdoptionPolicy != AdoptIfUnowned {
		v.add(at+".adopt", "write adoptionPolicy: "+string(AdoptIfUnowned)+", or leave out adopt",
			"adoptionPolicy is %s, so that nothing is taken over", d.AdoptionPolicy)
	}
}

// previous checks the names that were used before: one that is still used says nothing.
func (v *validator) previous() {
	c := &v.Conventions
	p := c.Previous
	if p == nil {
		return
	}
	const at = "conventions.previous"
	if *p == (Previous{}) {
		v.addWhole(at, "name what was used earlier: fieldManager, finalizer, hash or owner; or remove it", "required value is missing")
	}
	if v.changed(at+".fieldManager", p.FieldManager, c.FieldManager) {
		v.managerName(at+".fieldManager", p.FieldManager)
	}
	if v.changed(at+".finalizer", p.Finalizer, c.Finalizer) {
		v.previousFinalizer(at+".finalizer", p.Finalizer)
	}
	if p.Hash != nil {
		v.previousHash(at+".hash", *p.Hash)
	}
	if p.Owner != nil && v.required(at+".owner.annotation", p.Owner.Annotation, "name the annotation") {
		v.previousKey(at+".owner.annotation", p.Owner.Annotation, c.Owner.Annotation)
	}
}

func (v *validator) previousHash(at string, h PreviousHash) {
	c := &v.Conventions
	switch {
	case h.Annotation != "" && h.Label != "":
		v.add(at, "keep one of the two", "both annotation and label are given")
	case h.Annotation != "":
		v.previousKey(at+".annotation", h.Annotation, c.Hash.Annotation)
	case h.Label != "":
		v.previousKey(at+".label", h.Label, c.Hash.Label)
	default:
		v.addWhole(at, "add annotation: KEY or label: KEY, for the previous key of the hash", "no key is given")
	}
}

func (v *validator) previousKey(at, key, current string) {
	if v.changed(at, key, current) {
		v.key(at, key)
	}
}

// changed reports a name that is the one in use, and reports whether there is another.
func (v *validator) changed(at, name, current string) bool {
	if name != "" && name == current {
		v.add(at, "remove it", "%q is the current one", clip(name))
		return false
	}
	return name != ""
}

// addWhole reports that a map lacks what it must have, unless something in it was reported.
func (v *validator) addWhole(at, fix, problem string) {
	if !slices.ContainsFunc(v.broken, func(b string) bool { return below(b, at) }) {
		v.add(at, fix, "%s", problem)
	}
}

// previousFinalizer takes a name without a domain too, which custom resources may have from another tool; but not those
// with which Kubernetes itself says how to delete.
func (v *validator) previousFinalizer(at, name string) {
	if v.key(at, name) && slices.Contains([]string{metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents}, name) {
		v.add(at, "remove it", "%q is Kubernetes' own", name)
	}
}
