package config

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/corollary-dev/corollary/pkg/builtin"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
)

// maxManager is the API server's limit for a field manager's name, in bytes.
const maxManager = 128

func (v *validator) conventions() {
	c := &v.Conventions
	v.fieldManager(c.FieldManager)
	for _, k := range sortedKeys(c.Labels) {
		at := "conventions.labels" + fieldpath.New(k).String()
		if v.key(at, k) && !v.isTemplate(c.Labels[k]) {
			v.form(labelValue, at, c.Labels[k], c.Labels[k])
		}
	}
	for _, k := range sortedKeys(c.Annotations) {
		v.key("conventions.annotations"+fieldpath.New(k).String(), k)
	}
	v.selectorLabel()
	v.hash()
	if c.Owner.Annotation != "" {
		v.key("conventions.owner.annotation", c.Owner.Annotation)
	}
	if c.Finalizer != "" {
		v.finalizer("conventions.finalizer", c.Finalizer)
	}
	if c.Pause != nil && v.required("conventions.pause.annotation", c.Pause.Annotation, "name the annotation") {
		v.key("conventions.pause.annotation", c.Pause.Annotation)
	}
	if c.Reconcile != nil && v.required("conventions.reconcile.annotation", c.Reconcile.Annotation, "name the annotation") {
		v.key("conventions.reconcile.annotation", c.Reconcile.Annotation)
	}
	if c.ActivationToken != nil && v.required("conventions.activationToken.annotation", c.ActivationToken.Annotation, "name the annotation") {
		v.key("conventions.activationToken.annotation", c.ActivationToken.Annotation)
	}
	if c.Shard != nil && v.required("conventions.shard.label", c.Shard.Label, "name the label") {
		v.key("conventions.shard.label", c.Shard.Label)
	}
	v.previous()
	v.distinct()
}

func (v *validator) fieldManager(name string) {
	const path = "conventions.fieldManager"
	if v.elsewhere() && name == "" || !v.required(path, name, "name the manager of the fields that this operator applies") {
		return
	}
	v.managerName(path, name)
}

func (v *validator) finalizer(at, name string) {
	if v.key(at, name) && !strings.Contains(name, "/") {
		v.add(at, "write DOMAIN/NAME", "%q has no domain, and the API server refuses such finalizers on its own kinds", clip(name))
	}
}

func (v *validator) managerName(path, name string) {
	if len(name) > maxManager {
		v.add(path, "shorten it", "the name has %d bytes, and the API server takes %d", len(name), maxManager)
	}
	if strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		v.add(path, "remove it", "%q contains a character that cannot be printed", clip(name))
	}
}

// elsewhere reports whether conventions may be in another file that could not be read: then a missing key is not an error.
func (v *validator) elsewhere() bool {
	return v.shared != nil && v.shared.conventions == nil || v.reported(conventionsFileKey)
}

func (v *validator) isTemplate(s string) bool {
	return len(v.Delimiters) > 0 && v.Delimiters[0] != "" && strings.Contains(s, v.Delimiters[0])
}

// key checks the syntax that labels, annotations and finalizers share: an optional domain and a name.
func (v *validator) key(at, key string) bool {
	return v.form(qualifiedName, at, key, key)
}

// selectorLabel wants the label that makes the API server send us our own downstreams and no others.
func (v *validator) selectorLabel() {
	const path = "conventions.labels"
	ours := func(d Downstream) bool { return !d.ownsFields() }
	if v.elsewhere() || len(v.Downstreams) > 0 && !slices.ContainsFunc(v.Downstreams, ours) {
		return
	}
	for _, k := range sortedKeys(v.Conventions.Labels) {
		if !v.isTemplate(v.Conventions.Labels[k]) {
			return
		}
	}
	problem := "there is no label"
	if len(v.Conventions.Labels) > 0 {
		problem = "every label's value is a template"
	}
	for _, b := range v.broken {
		if below(b, path) {
			return
		}
	}
	v.add(path, "add a key of your own with a constant value: the watch of the downstreams selects by it", "%s", problem)
}

func (v *validator) hash() {
	h := v.Conventions.Hash
	switch {
	case h.Annotation != "" && h.Label != "":
		v.add("conventions.hash", "keep one of the two", "both annotation and label are given")
	case h.Annotation != "":
		v.hashKey("conventions.hash.annotation", h.Annotation, "conventions.annotations", v.Conventions.Annotations)
	case h.Label != "":
		v.hashKey("conventions.hash.label", h.Label, "conventions.labels", v.Conventions.Labels)
	case !v.elsewhere() && !v.reported("conventions.hash.annotation") && !v.reported("conventions.hash.label"):
		v.add("conventions.hash", "add annotation: KEY or label: KEY, for the key of the hash", "no key is given")
	}
}

func (v *validator) hashKey(path, key, where string, given map[string]string) {
	if v.key(path, key) {
		v.notGiven(path, key, where, given)
	}
}

// notGiven reports a key that Corollary writes and that the config gives a value of its own, in the map that where
// names.
func (v *validator) notGiven(path, key, where string, given map[string]string) {
	if _, ok := given[key]; ok && key != "" {
		v.add(path, "choose another key", "%s is given in %s too", key, where)
	}
}

// needs reports the keys that a feature needs: where owner references cannot tell the owner or clean up, an
// annotation and a finalizer must. Each missing key is one error, however many features need it.
func (v *validator) needs() {
	if v.elsewhere() {
		return
	}
	c := &v.Conventions
	var why []string
	if !*c.Owner.Reference {
		why = append(why, "conventions.owner.reference is false")
	}
	for i, d := range v.Downstreams {
		at := fmt.Sprintf("downstreams[%d]", i)
		if d.ownsFields() {
			why = append(why, at+".ownership is Fields, and an object of others takes no owner reference")
		} else if d.DeletionPolicy == DeletionOrphan {
			why = append(why, at+".deletionPolicy is Orphan, and an object with an owner reference would be collected")
		}
		why = append(why, v.needsElsewhere(at, d.TargetNamespaces)...)
	}
	if b := v.Deletion.Before; b != nil {
		why = append(why, v.needsElsewhere("deletion.before", b.TargetNamespaces)...)
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
		v.add("conventions.owner.annotation", "add a key of your own: it names the owner instead", "required value is missing: %s", because)
	}
	if c.Finalizer == "" && v.Source == nil {
		v.add("conventions.finalizer", "add a name of your own: it holds the upstream until its downstreams are cleaned up",
			"required value is missing: %s", because)
	}
}

// needsElsewhere says why an object that may live in another namespace than its upstream needs them. An owner reference
// from a cluster-scoped upstream is legal in every namespace.
func (v *validator) needsElsewhere(at string, t TargetNamespaces) []string {
	namespaced, known := builtin.Scope(v.Watch.gvk().GroupKind())
	if v.Watch.Schema != nil {
		namespaced, known = v.Watch.Schema.Scope != ScopeCluster, true
	}
	if t.From == NamespacesSame || known && !namespaced {
		return nil
	}
	why := fmt.Sprintf("%s.targetNamespaces.from is %s, and owner references do not cross namespaces", at, t.From)
	if !known {
		why += fmt.Sprintf(" (if %s is cluster-scoped they do, but only the API server knows)", v.Watch.Kind)
	}
	return []string{why}
}

// groupKind identifies a kind whatever its version.
func groupKind(apiVersion, kind string) string {
	group, _, grouped := strings.Cut(apiVersion, "/")
	if !grouped {
		group = ""
	}
	return group + "/" + kind
}
