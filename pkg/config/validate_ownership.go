package config

import (
	"fmt"
)

// ownership checks what a config may say about an object that someone else makes and deletes.
func (v *validator) ownership(at string, d *Downstream) {
	if !d.ownsFields() {
		if d.Force {
			v.add(at+".force", "remove it, or set ownership: Fields", "it has no effect: an object of ours is always applied by force")
		}
		return
	}
	const why = "the object belongs to others (ownership: Fields)"
	for _, one := range []struct {
		key string
		set bool
	}{
		{"adoptionPolicy", d.AdoptionPolicy != AdoptNever},
		{"adopt", d.Adopt != nil},
		{"updatePolicy", d.UpdatePolicy != UpdateApply},
		{"deletionPolicy", d.DeletionPolicy != DeletionOrphan},
		{"drift.initialFields", len(d.Drift.InitialFields) > 0},
		{"drift.exclusiveFields", len(d.Drift.ExclusiveFields) > 0},
		{"generated", len(d.Generated) > 0},
	} {
		if one.set {
			v.add(at+"."+one.key, "remove it", "it is not supported here: %s", why)
		}
	}
	if groupKind(d.APIVersion, d.Kind) == groupKind(v.Watch.APIVersion, v.Watch.Kind) {
		v.add(at+".ownership", "watch the objects by another operator, or use a kind of your own as upstream",
			"the upstreams' own kind is not supported here: an object with our owner annotation is not an upstream")
	}
	for i := range v.Downstreams {
		if other := &v.Downstreams[i]; !other.ownsFields() && other.sharesKind(d) {
			v.add(at+".ownership", "move one of them to another operator, with another field manager and owner annotation",
				"downstream %s owns whole objects of the same kind: which of both an object belongs to would not be known",
				fmt.Sprintf("%q", other.Name))
			return
		}
	}
}

// sharesKind reports whether the objects of two downstreams are of one kind, whatever its version.
func (d *Downstream) sharesKind(other *Downstream) bool {
	return groupKind(d.APIVersion, d.Kind) == groupKind(other.APIVersion, other.Kind)
}

func (d *Downstream) ownsFields() bool { return d.Ownership == OwnershipFields }
