package validate

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/corollary-dev/corollary/pkg/builtin"
	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/config/document"
	"github.com/corollary-dev/corollary/pkg/config/forms"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
)

func checkConventions(v *validator) {
	c := &v.Conventions
	checkFieldManager(v, c.FieldManager)
	for _, k := range document.SortedKeys(c.Labels) {
		at := "conventions.labels" + fieldpath.New(k).String()
		if checkKey(v, at, k) && !v.IsTemplate(c.Labels[k]) {
			v.form(forms.LabelValue, at, c.Labels[k], c.Labels[k])
		}
	}
	for _, k := range document.SortedKeys(c.Annotations) {
		checkKey(v, "conventions.annotations"+fieldpath.New(k).String(), k)
	}
	checkSelectorLabel(v)
	checkHash(v)
	if c.Owner.Annotation != "" {
		checkKey(v, "conventions.owner.annotation", c.Owner.Annotation)
	}
	if c.Finalizer != "" {
		checkFinalizer(v, "conventions.finalizer", c.Finalizer)
	}
	named := map[string]bool{"downstreamName.annotation": true, "pause.annotation": true, "reconcile.annotation": true,
		"activationToken.annotation": true, "shard.label": true, "rollout.annotation": true}
	for _, key := range c.Keys() {
		_, what, _ := strings.Cut(key.Path, ".")
		if named[key.Path] && v.required("conventions."+key.Path, key.Annotation+key.Label, "name the "+what) {
			checkKey(v, "conventions."+key.Path, key.Annotation+key.Label)
		}
	}
	checkPrevious(v)
	checkDistinct(v)
}

func checkFieldManager(v *validator, name string) {
	const path = "conventions.fieldManager"
	if v.unread && name == "" || !v.required(path, name, "name the manager of the fields that this operator applies") {
		return
	}
	checkManagerName(v, path, name)
}

func checkFinalizer(v *validator, at, name string) {
	if checkKey(v, at, name) && !strings.Contains(name, "/") {
		v.Add(at, "write DOMAIN/NAME", "%q has no domain, and the API server refuses such finalizers on its own kinds",
			document.Clip(name))
	}
}

func checkManagerName(v *validator, path, name string) {
	if len(name) > forms.MaxManager {
		v.Add(path, "shorten it", "the name has %d bytes, and the API server takes %d", len(name), forms.MaxManager)
	}
	if strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		v.Add(path, "remove it", "%q contains a character that cannot be printed", document.Clip(name))
	}
}

// checkKey checks the syntax that labels, annotations and finalizers share: an optional domain and a name.
func checkKey(v *validator, at, key string) bool {
	return v.form(forms.QualifiedName, at, key, key)
}

// checkSelectorLabel wants the label that makes the API server send us our own downstreams and no others.
func checkSelectorLabel(v *validator) {
	const path = "conventions.labels"
	ours := func(d config.Downstream) bool { return !d.OwnsFields() }
	if v.unread || len(v.Downstreams) > 0 && !slices.ContainsFunc(v.Downstreams, ours) {
		return
	}
	for _, k := range document.SortedKeys(v.Conventions.Labels) {
		if !v.IsTemplate(v.Conventions.Labels[k]) {
			return
		}
	}
	problem := "there is no label"
	if len(v.Conventions.Labels) > 0 {
		problem = "every label's value is a template"
	}
	for _, b := range v.Broken {
		if document.Below(b, path) {
			return
		}
	}
	v.Add(path, "add a key of your own with a constant value: the watch of the downstreams selects by it", "%s", problem)
}

func checkHash(v *validator) {
	h := v.Conventions.Hash
	switch {
	case h.Annotation != "" && h.Label != "":
		v.Add("conventions.hash", "keep one of the two", "both annotation and label are given")
	case h.Annotation != "":
		checkHashKey(v, "conventions.hash.annotation", h.Annotation, "conventions.annotations", v.Conventions.Annotations)
	case h.Label != "":
		checkHashKey(v, "conventions.hash.label", h.Label, "conventions.labels", v.Conventions.Labels)
	case !v.unread && !v.Reported("conventions.hash.annotation") && !v.Reported("conventions.hash.label"):
		v.Add("conventions.hash", "add annotation: KEY or label: KEY, for the key of the hash", "no key is given")
	}
}

func checkHashKey(v *validator, path, key, where string, given map[string]string) {
	if checkKey(v, path, key) {
		checkNotGiven(v, path, key, where, given)
	}
}

// checkNotGiven reports a key that Corollary writes and that the config gives a value of its own, in the map that where
// names.
func checkNotGiven(v *validator, path, key, where string, given map[string]string) {
	if _, ok := given[key]; ok && key != "" {
		v.Add(path, "choose another key", "%s is given in %s too", key, where)
	}
}

// checkNeeds reports the keys that a feature needs: where owner references cannot tell the owner or clean up, an
// annotation and a finalizer must. Each missing key is one error, however many features need it.
func checkNeeds(v *validator) {
	if v.unread {
		return
	}
	c := &v.Conventions
	var why []string
	if !*c.Owner.Reference {
		why = append(why, "conventions.owner.reference is false")
	}
	for i, d := range v.Downstreams {
		at := fmt.Sprintf("downstreams[%d]", i)
		if d.OwnsFields() {
			why = append(why, at+".ownership is Fields, and an object of others takes no owner reference")
		} else if d.DeletionPolicy == config.DeletionOrphan {
			why = append(why, at+".deletionPolicy is Orphan, and an object with an owner reference would be collected")
		}
		why = append(why, needsElsewhere(v, at, d.TargetNamespaces)...)
	}
	if b := v.Deletion.Before; b != nil {
		why = append(why, needsElsewhere(v, "deletion.before", b.TargetNamespaces)...)
	}
	if v.Source != nil {
		why = []string{"a row cannot own an object by reference"}
	}
	if len(why) == 0 {
		return
	}
	because := why[0]
	if len(why) > 1 {
		because += fmt.Sprintf("; %d settings need it", len(why))
	}
	if c.Owner.Annotation == "" {
		v.Add("conventions.owner.annotation", "add a key of your own: it names the owner instead",
			"required value is missing: %s", because)
	}
	if c.Finalizer == "" && v.Source == nil {
		v.Add("conventions.finalizer", "add a name of your own: it holds the upstream until its downstreams are cleaned up",
			"required value is missing: %s", because)
	}
}

// needsElsewhere says why an object that may live in another namespace than its upstream needs them. An owner reference
// from a cluster-scoped upstream is legal in every namespace.
func needsElsewhere(v *validator, at string, t config.TargetNamespaces) []string {
	namespaced, known := builtin.Scope(v.Watch.GVK().GroupKind())
	if v.Watch.Schema != nil {
		namespaced, known = v.Watch.Schema.Scope != config.ScopeCluster, true
	}
	if t.From == config.NamespacesSame || known && !namespaced {
		return nil
	}
	why := fmt.Sprintf("%s.targetNamespaces.from is %s, and owner references do not cross namespaces", at, t.From)
	if !known {
		why += fmt.Sprintf(" (if %s is cluster-scoped they do, but only the API server knows)", v.Watch.Kind)
	}
	return []string{why}
}
