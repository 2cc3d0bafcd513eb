package crddiff

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/corollary-dev/corollary/pkg/kinds"
)

type definition = apiextensionsv1.CustomResourceDefinition

// Diff lists the changes from some definitions to others, by name and path. One that is only in to is compatible,
// unless API servers refuse it. The error is about a definition that cannot be compared.
func Diff(from, to []*definition) ([]Change, error) {
	var all []Change
	for _, old := range from {
		i := slices.IndexFunc(to, func(d *definition) bool { return d.Name == old.Name })
		if i < 0 {
			all = append(all, removed(old, from, to))
			continue
		}
		changes, err := diff(old, to[i])
		if err != nil {
			return nil, err
		}
		all = append(all, changes...)
	}
	for _, d := range to {
		i := slices.IndexFunc(from, func(old *definition) bool { return old.Name == d.Name })
		var known []kinds.Refusal
		if i >= 0 {
			known, _ = kinds.Refusals(context.Background(), from[i])
		}
		refusals, err := kinds.Refusals(context.Background(), d)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", d.Name, err)
		}
		for _, r := range refusals {
			isSame := func(k kinds.Refusal) bool { return k.Path.Equal(r.Path) && k.Reason == r.Reason }
			if !slices.ContainsFunc(known, isSame) {
				all = append(all, Change{CRD: d.Name, Path: at(r.Path.String()), Level: Breaking, Fix: cmp.Or(r.Fix, "correct it"),
					Reason: "API servers refuse the definition: " + r.Reason})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b Change) int {
		return cmp.Or(cmp.Compare(a.CRD, b.CRD), cmp.Compare(a.Version, b.Version), cmp.Compare(a.Path, b.Path))
	})
	return all, nil
}

// removed is about a definition that is not there any more. Group and plural make its name: one with others is another
// definition.
func removed(old *definition, from, to []*definition) Change {
	c := Change{CRD: old.Name, Path: "metadata.name", Level: Breaking, Fix: "keep the definition until no object is left",
		Reason: "the CustomResourceDefinition was removed: deleting it deletes all objects"}
	for _, d := range to {
		isNew := !slices.ContainsFunc(from, func(f *definition) bool { return f.Name == d.Name })
		if isNew && (d.Spec.Names.Kind == old.Spec.Names.Kind || d.Spec.Group == old.Spec.Group &&
			d.Spec.Names.Plural == old.Spec.Names.Plural) {
			c.Reason = fmt.Sprintf(
				"the kind is now defined by %s: for the API server that is another kind, which has none of the objects", d.Name)
			c.Fix = "keep both definitions until the objects have been copied"
		}
	}
	return c
}

// differ compares the two states of one definition.
type differ struct {
	old, new *definition
	schemas  map[bool]map[string]*kinds.Version // of the new one: true
	lost     map[string]bool                    // what objects lose that are stored now: path and reason
	changes  []Change
}

func diff(from, to *definition) ([]Change, error) {
	d := &differ{old: from, new: to, schemas: map[bool]map[string]*kinds.Version{}, lost: map[string]bool{}}
	for isNew, definition := range map[bool]*definition{false: from, true: to} {
		storage := 0
		for _, v := range definition.Spec.Versions {
			if v.Storage {
				storage++
			}
		}
		if storage != 1 {
			return nil, fmt.Errorf("%s: spec.versions has %d versions with storage: true: exactly one must have it",
				definition.Name, storage)
		}
		versions, err := kinds.Versions(definition)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", definition.Name, err)
		}
		d.schemas[isNew] = map[string]*kinds.Version{}
		for _, v := range versions {
			d.schemas[isNew][v.Name] = v
		}
	}
	d.names()
	d.conversion()
	for i := range from.Spec.Versions {
		d.version(&from.Spec.Versions[i], find(to, from.Spec.Versions[i].Name))
	}
	for i := range to.Spec.Versions {
		d.lint(find(from, to.Spec.Versions[i].Name), &to.Spec.Versions[i])
	}
	d.stored()
	d.apart()
	return d.changes, nil
}

func (d *differ) add(version, path string, level Level, reason, fix string) {
	d.changes = append(d.changes, Change{CRD: d.old.Name, Version: version, Path: path,
		Level: level, Reason: reason, Fix: fix})
}

func find(d *definition, version string) *apiextensionsv1.CustomResourceDefinitionVersion {
	for i := range d.Spec.Versions {
		if d.Spec.Versions[i].Name == version {
			return &d.Spec.Versions[i]
		}
	}
	return nil
}

// names compares what belongs to the definition as a whole.
func (d *differ) names() {
	before, after := d.old.Spec, d.new.Spec
	const recreate = "give the new kind another name, and copy the objects"
	if before.Scope != after.Scope {
		d.add(
			"",
			"spec.scope",
			Breaking,
			fmt.Sprintf("the scope was %s and is %s: the API server refuses the change", before.Scope, after.Scope),
			recreate,
		)
	}
	if before.Group != after.Group {
		d.add(
			"",
			"spec.group",
			Breaking,
			fmt.Sprintf("the group was %s and is %s: the API server refuses the change", before.Group, after.Group),
			recreate,
		)
	}
	if before.Names.Kind != after.Names.Kind {
		d.add(
			"",
			"spec.names.kind",
			Breaking,
			fmt.Sprintf("the kind was %s and is %s: the API server refuses the change", before.Names.Kind, after.Names.Kind),
			recreate,
		)
	}
	for _, name := range []struct{ path, before, after, users string }{
		{"spec.names.listKind", cmp.Or(before.Names.ListKind, before.Names.Kind+"List"),
			cmp.Or(after.Names.ListKind, after.Names.Kind+"List"), "clients"},
		{"spec.names.singular", cmp.Or(before.Names.Singular, strings.ToLower(before.Names.Kind)),
			cmp.Or(after.Names.Singular, strings.ToLower(after.Names.Kind)), "commands"},
	} {
		if name.before != name.after && before.Names.Kind == after.Names.Kind {
			d.add("", name.path, Breaking,
				fmt.Sprintf("it was %s and is %s: %s that use the old name fail", name.before, name.after, name.users), "keep it")
		}
	}
	for _, name := range before.Names.ShortNames {
		if !slices.Contains(after.Names.ShortNames, name) {
			d.add("", "spec.names.shortNames", Breaking,
				fmt.Sprintf("the short name %s was removed: commands that use it fail", name), "keep it")
		}
	}
	if before.PreserveUnknownFields && !after.PreserveUnknownFields {
		d.add("", "spec.preserveUnknownFields", Conversion,
			"preserveUnknownFields was taken away: fields that no schema declares are dropped",
			"declare the fields, or set x-kubernetes-preserve-unknown-fields: true where they are")
	}
}

// conversion compares how one version is made of another.
func (d *differ) conversion() {
	before, after := strategy(d.old), strategy(d.new)
	switch {
	case before == after:
	case after == apiextensionsv1.WebhookConverter:
		d.add(
			"",
			"spec.conversion.strategy",
			Conversion,
			"the strategy was None and is Webhook: every read of another version than the stored one fails "+
				"while the webhook does not answer",
			"start the webhook first, and prove the conversion: corollary convert prove",
		)
	default:
		d.add("", "spec.conversion.strategy", Breaking,
			"the strategy was Webhook and is None: fields that the other version lacks are dropped",
			"keep the webhook until only one version is served and stored")
	}
}

func strategy(d *definition) apiextensionsv1.ConversionStrategyType {
	if d.Spec.Conversion == nil {
		return apiextensionsv1.NoneConverter
	}
	return d.Spec.Conversion.Strategy
}

// version compares the two states of one version, the second nil where it was removed.
func (d *differ) version(before, after *apiextensionsv1.CustomResourceDefinitionVersion) {
	isStored := before.Storage // of a file nothing more is known
	if len(d.old.Status.StoredVersions) > 0 {
		isStored = slices.Contains(d.old.Status.StoredVersions, before.Name)
	}
	switch {
	case after == nil && isStored:
		d.add(
			before.Name,
			"spec.versions",
			Breaking,
			"the version was removed, and objects are stored in it: the API server refuses that while status.storedVersions "+
				"names it",
			"make another version the stored one, run corollary migrate "+d.old.Name+" --leaving "+before.Name+
				", then remove it",
		)
		return
	case after == nil && before.Served:
		d.add(
			before.Name,
			"spec.versions",
			Breaking,
			"the version was removed: clients that use it are answered 404, and managers that applied in it fail at their "+
				"next apply",
			"set served: false first, and look who uses it: corollary crd usage "+d.old.Name,
		)
		return
	case after == nil:
		d.add(before.Name, "spec.versions", Compatible, "the version was removed; it was not served", "")
		return
	case before.Served && !after.Served:
		d.add(before.Name, "served", Breaking, "the version is not served any more: clients that use it are answered 404",
			"deprecate it first, and look who uses it: corollary crd usage "+d.old.Name)
	}
	if after.Storage && !before.Storage {
		d.add(before.Name, "storage", Compatible,
			"the version is the stored one now: objects stay stored as they are until they are written",
			"corollary migrate "+d.old.Name)
		d.changes[len(d.changes)-1].Rollback = "the old definition can only be applied with this version in spec.versions"
	}
	d.subresources(before, after)
	d.schema(before.Name)
}

func (d *differ) subresources(older, newer *apiextensionsv1.CustomResourceDefinitionVersion) {
	none := &apiextensionsv1.CustomResourceSubresources{}
	before, after := cmp.Or(older.Subresources, none), cmp.Or(newer.Subresources, none)
	switch {
	case before.Status != nil && after.Status == nil:
		d.add(
			older.Name,
			"subresources.status",
			Breaking,
			"the status subresource was removed: controllers that write it are answered 404, and whoever "+
				"writes an object writes its status",
			"keep it",
		)
	case before.Status == nil && after.Status != nil:
		d.add(older.Name, "subresources.status", Breaking,
			"the status subresource was added: a status that is written with the object is ignored",
			"have its writers use the subresource, from a new version on")
	}
	if before.Scale != nil && !reflect.DeepEqual(before.Scale, after.Scale) {
		d.add(
			older.Name,
			"subresources.scale",
			Breaking,
			"the scale subresource was removed or changed: autoscalers and kubectl scale fail or scale another field",
			"keep it",
		)
	}
	for _, f := range older.SelectableFields {
		if !slices.Contains(newer.SelectableFields, f) {
			d.add(
				older.Name,
				"selectableFields",
				Breaking,
				fmt.Sprintf("%s cannot be selected any more: watches that select by it fail", f.JSONPath),
				"keep it",
			)
		}
	}
}

// lint reports what is wrong with a version itself, where it was not before.
func (d *differ) lint(before, after *apiextensionsv1.CustomResourceDefinitionVersion) {
	if after.Storage && !after.Served && (before == nil || !before.Storage || before.Served) {
		d.add(
			after.Name,
			"storage",
			Breaking,
			"the stored version is not served: objects can only be read by converting them, and nobody can look at what is "+
				"stored",
			"serve it, or store a version that is served",
		)
	}
	warned := func(v *apiextensionsv1.CustomResourceDefinitionVersion) bool {
		return !v.Deprecated || v.DeprecationWarning != nil
	}
	if !warned(after) && (before == nil || warned(before)) {
		d.add(
			after.Name,
			"deprecationWarning",
			Compatible,
			"the version is deprecated without deprecationWarning: users are warned, but do not learn what to use instead",
			"say which version to use, and until when this one is served",
		)
	}
}

// schema compares the schemas that a version had and has.
func (d *differ) schema(version string) {
	before, after := d.schemas[false][version].Structural, d.schemas[true][version].Structural
	back := losses(after, before)
	for _, l := range losses(before, after) {
		d.loss(version, l, "")
	}
	for _, l := range back {
		if slices.ContainsFunc(d.changes, func(c Change) bool { return c.Version == version && c.Path == l.path }) {
			continue
		}
		d.changes = append(d.changes, Change{
			CRD: d.old.Name, Version: version, Path: l.path, Level: Compatible,
			Reason:   "more is allowed than before, in the same version",
			Rollback: "with the old definition: " + l.what,
			Fix:      "to be able to go back, do it in a new version",
		})
	}
}

func (d *differ) loss(version string, l loss, before string) {
	d.add(version, l.path, l.level, before+l.what, l.fix)
	c := &d.changes[len(d.changes)-1]
	if c.Ratcheted = l.ratcheted; l.ratcheted {
		c.Reason += "; an update that leaves the value as it is passes (ratcheting), creating and restoring do not"
	}
}

// stored compares the schema in which objects are stored with that in which they will be: what that one does not
// declare is lost with the next write of an object, whatever else is served.
func (d *differ) stored() {
	from, to := kinds.StoredVersion(d.old), kinds.StoredVersion(d.new)
	if from == to || strategy(d.new) == apiextensionsv1.WebhookConverter {
		return
	}
	for _, l := range losses(d.schemas[false][from].Structural, d.schemas[true][to].Structural) {
		if l.level != Conversion {
			continue // limits hold in the version of a request
		}
		d.lost[l.path+l.what] = true
		l.level, l.fix = Breaking,
			"declare it in "+to+" as in "+from+", or have a webhook convert first; where one does that files leave out, "+
				"compare with the cluster: corollary crd diff cluster NEW"
		d.loss(to, l, "objects that are stored as "+from+" are stored as "+to+" once they are written, without a "+
			"conversion: ")
	}
}

// apart compares each version with the stored one: without a webhook nothing but apiVersion changes from one to the
// other. What the same two versions lost before is not reported again.
func (d *differ) apart() {
	target := kinds.StoredVersion(d.new)
	for _, v := range d.new.Spec.Versions {
		isNew := find(d.old, v.Name) == nil
		switch {
		case v.Name == target && isNew:
			d.add(v.Name, "storage", Compatible,
				"the version is new and the stored one: objects stay stored as they are until they are written",
				"corollary migrate "+d.old.Name)
			continue
		case v.Name == target, !v.Served:
			continue
		case strategy(d.new) == apiextensionsv1.WebhookConverter:
			if isNew {
				d.add(
					v.Name,
					"spec.versions",
					Compatible,
					"the version is new; the webhook converts it",
					"prove that nothing is lost: corollary convert prove",
				)
			}
			continue
		}
		n := d.between(v.Name, target, v.Name,
			"objects that are stored as "+target+" are served in this version without a conversion: ") +
			d.between(v.Name, v.Name, target,
				"objects that are written in this version are stored as "+target+" without a conversion: ")
		if isNew && n == 0 {
			d.add(v.Name, "spec.versions", Compatible, "the version is new and has the schema of "+target, "")
		}
	}
}

// Dropped lists the fields that objects stored in a version lose when they are written in another one without a
// conversion.
func Dropped(crd *apiextensionsv1.CustomResourceDefinition, from, to string) ([]Change, error) {
	versions, err := kinds.Versions(crd)
	if err != nil {
		return nil, err
	}
	schemas := map[string]*kinds.Version{}
	for _, v := range versions {
		schemas[v.Name] = v
	}
	if schemas[from] == nil || schemas[to] == nil {
		return nil, fmt.Errorf("%s has no version %s or no version %s", crd.Name, from, to)
	}
	var dropped []Change
	for _, l := range losses(schemas[from].Structural, schemas[to].Structural) {
		if l.level == Conversion {
			dropped = append(dropped, Change{CRD: crd.Name, Version: to, Path: l.path, Level: l.level,
				Reason: l.what, Fix: l.fix})
		}
	}
	return dropped, nil
}

// between reports what is lost from one version to another one, and was not before.
func (d *differ) between(about, from, to, before string) int {
	known := map[string]bool{}
	if older, newer := d.schemas[false][from], d.schemas[false][to]; older != nil && newer != nil &&
		strategy(d.old) == strategy(d.new) {
		for _, l := range losses(older.Structural, newer.Structural) {
			known[l.path+l.what] = true
		}
	}
	n := 0
	for _, l := range losses(d.schemas[true][from].Structural, d.schemas[true][to].Structural) {
		if known[l.path+l.what] || from == kinds.StoredVersion(d.old) && d.lost[l.path+l.what] {
			continue
		}
		l.level, l.ratcheted = Conversion, false
		l.fix = "make the same change in both versions, or declare a conversion and prove it: corollary convert prove"
		d.loss(about, l, before)
		n++
	}
	return n
}

// Worst is the highest level of changes. Where goingBack counts, a change that cannot be taken back needs a version of
// its own.
func Worst(changes []Change, goingBack bool) Level {
	worst := Compatible
	for _, c := range changes {
		worst = max(worst, c.Level)
		if goingBack && c.Rollback != "" {
			worst = max(worst, Conversion)
		}
	}
	return worst
}
