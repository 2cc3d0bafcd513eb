package config

// distinct reports an annotation that would have to hold two things. Those of upstreams and of downstreams are compared
// too: what is downstream here may be upstream to another operator. What was used before counts as used, for it is read
// still; that it differs from its own successor is said elsewhere.
func (v *validator) distinct() {
	c := &v.Conventions
	v.notGiven("conventions.owner.annotation", c.Owner.Annotation, "conventions.annotations", c.Annotations)
	if c.ActivationToken != nil {
		v.notGiven("conventions.activationToken.annotation", c.ActivationToken.Annotation, "conventions.annotations", c.Annotations)
	}
	if c.Shard != nil {
		v.notGiven("conventions.shard.label", c.Shard.Label, "conventions.labels", c.Labels)
		if c.Shard.Label != "" && c.Shard.Label == c.Hash.Label {
			v.add("conventions.shard.label", "choose another key", "%s is conventions.hash.label too", c.Shard.Label)
		}
	}
	if p := c.Previous; p != nil && p.Hash != nil {
		v.notGiven("conventions.previous.hash.annotation", p.Hash.Annotation, "conventions.annotations", c.Annotations)
		v.notGiven("conventions.previous.hash.label", p.Hash.Label, "conventions.labels", c.Labels)
	}
	if p := c.Previous; p != nil && p.Owner != nil {
		v.notGiven("conventions.previous.owner.annotation", p.Owner.Annotation, "conventions.annotations", c.Annotations)
	}
	used := map[string]string{}
	for _, key := range c.Keys() {
		switch other, taken := used[key.Annotation]; {
		case key.Annotation == "":
		case taken && key.Path != "previous."+other:
			v.add("conventions."+key.Path, "choose another key", "%s is conventions.%s too", key.Annotation, other)
		case !taken:
			used[key.Annotation] = key.Path
		}
	}
}
