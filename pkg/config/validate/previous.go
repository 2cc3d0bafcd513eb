package validate

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/config/document"
)

// checkAdopt checks the managers whose fields become ours along with an object that is taken over.
func checkAdopt(v *validator, at string, d *config.Downstream) {
	if d.Adopt == nil {
		return
	}
	path := at + ".adopt.fieldManagers"
	if len(d.Adopt.FieldManagers) == 0 {
		v.Add(path, "name the writers as metadata.managedFields does, or leave out adopt", "required value is missing")
	}
	for i, name := range d.Adopt.FieldManagers {
		here := fmt.Sprintf("%s[%d]", path, i)
		switch j := slices.Index(d.Adopt.FieldManagers, name); {
		case !v.required(here, name, "name a writer as metadata.managedFields does"):
		case j < i:
			v.Add(here, "remove one of them", "%q is already item %d", document.Clip(name), j)
		case name == v.Conventions.FieldManager:
			v.Add(here, "remove it", "%q is this operator's own field manager", document.Clip(name))
		default:
			checkManagerName(v, here, name)
		}
	}
	if d.AdoptionPolicy != config.AdoptIfUnowned {
		v.Add(at+".adopt", "write adoptionPolicy: "+string(config.AdoptIfUnowned)+", or leave out adopt",
			"adoptionPolicy is %s, so that nothing is taken over", d.AdoptionPolicy)
	}
}

// checkPrevious checks the names that were used before: one that is still used says nothing.
func checkPrevious(v *validator) {
	c := &v.Conventions
	p := c.Previous
	if p == nil {
		return
	}
	const at = "conventions.previous"
	if *p == (config.Previous{}) {
		addWhole(v, at, "name what was used earlier: fieldManager, finalizer, hash or owner; or remove it",
			"required value is missing")
	}
	if isChanged(v, at+".fieldManager", p.FieldManager, c.FieldManager) {
		checkManagerName(v, at+".fieldManager", p.FieldManager)
	}
	if isChanged(v, at+".finalizer", p.Finalizer, c.Finalizer) {
		checkPreviousFinalizer(v, at+".finalizer", p.Finalizer)
	}
	if p.Hash != nil {
		checkPreviousHash(v, at+".hash", *p.Hash)
	}
	if p.Owner != nil && v.required(at+".owner.annotation", p.Owner.Annotation, "name the annotation") {
		checkPreviousKey(v, at+".owner.annotation", p.Owner.Annotation, c.Owner.Annotation)
	}
}

func checkPreviousHash(v *validator, at string, h config.PreviousHash) {
	c := &v.Conventions
	switch {
	case h.Annotation != "" && h.Label != "":
		v.Add(at, "keep one of the two", "both annotation and label are given")
	case h.Annotation != "":
		checkPreviousKey(v, at+".annotation", h.Annotation, c.Hash.Annotation)
	case h.Label != "":
		checkPreviousKey(v, at+".label", h.Label, c.Hash.Label)
	default:
		addWhole(v, at, "add annotation: KEY or label: KEY, for the previous key of the hash", "no key is given")
	}
}

func checkPreviousKey(v *validator, at, key, current string) {
	if isChanged(v, at, key, current) {
		checkKey(v, at, key)
	}
}

// isChanged reports a name that is the one in use, and reports whether there is another.
func isChanged(v *validator, at, name, current string) bool {
	if name != "" && name == current {
		v.Add(at, "remove it", "%q is the current one", document.Clip(name))
		return false
	}
	return name != ""
}

// addWhole reports that a map lacks what it must have, unless something in it was reported.
func addWhole(v *validator, at, fix, problem string) {
	if !slices.ContainsFunc(v.Broken, func(b string) bool { return document.Below(b, at) }) {
		v.Add(at, fix, "%s", problem)
	}
}

// checkPreviousFinalizer takes a name without a domain too, which custom resources may have from another tool; but not
// those with which Kubernetes itself says how to delete.
func checkPreviousFinalizer(v *validator, at, name string) {
	if checkKey(v, at, name) && slices.Contains([]string{metav1.FinalizerOrphanDependents,
		metav1.FinalizerDeleteDependents}, name) {
		v.Add(at, "remove it", "%q is Kubernetes' own", name)
	}
}
