package validate

import (
	"fmt"

	"github.com/corollary-dev/corollary/pkg/config"
)

// checkOwnership checks what a config may say about an object that someone else makes and deletes.
func checkOwnership(v *validator, at string, d *config.Downstream) {
	if !d.OwnsFields() {
		if d.Force {
			v.Add(at+".force", "remove it, or set ownership: Fields",
				"it has no effect: an object of ours is always applied by force")
		}
		return
	}
	const why = "the object belongs to others (ownership: Fields)"
	for _, one := range []struct {
		key string
		set bool
	}{
		{"adoptionPolicy", d.AdoptionPolicy != config.AdoptNever},
		{"adopt", d.Adopt != nil},
		{"updatePolicy", d.UpdatePolicy != config.UpdateApply},
		{"deletionPolicy", d.DeletionPolicy != config.DeletionOrphan},
		{"drift.initialFields", len(d.Drift.InitialFields) > 0},
		{"drift.exclusiveFields", len(d.Drift.ExclusiveFields) > 0},
		{"generated", len(d.Generated) > 0},
	} {
		if one.set {
			v.Add(at+"."+one.key, "remove it", "it is not supported here: %s", why)
		}
	}
	if config.GroupKind(d.APIVersion, d.Kind) == config.GroupKind(v.Watch.APIVersion, v.Watch.Kind) {
		v.Add(at+".ownership", "watch the objects by another operator, or use a kind of your own as upstream",
			"the upstreams' own kind is not supported here: an object with our owner annotation is not an upstream")
	}
	for i := range v.Downstreams {
		if other := &v.Downstreams[i]; !other.OwnsFields() && other.SharesKind(d) {
			v.Add(at+".ownership", "move one of them to another operator, with another field manager and owner annotation",
				"downstream %s owns whole objects of the same kind: which of both an object belongs to would not be known",
				fmt.Sprintf("%q", other.Name))
			return
		}
	}
}
