package config

// distinct reports an annotation that would have to hold two things. Those of upstreams and of downstreams are compared
// too: what is downstream here may be upstream to another operator. What was used before counts as used, for it is read
// still; that it differs from its own successor is said elsewhere.
func (v *validator) distinct() {
	const hash, owner = "hash.annotation", "owner.annotation"
	c := &v.Conventions
	used := map[string]string{}
	take := func(path, key string) {
		switch other, taken := used[key]; {
		case key == "":
		case taken && path != "previous."+other:
			v.add("conventions."+path, "choose another key", "%s is conventions.%s too", key, other)
		case !taken:
			used[key] = path
		}
	}
	take(hash, c.Hash.Annotation)
	v.notGiven("conventions."+owner, c.Owner.Annotation, "conventions.annotations", c.Annotations)
	take(owner, c.Owner.Annotation)
	if c.Pause != nil {
		take("pause.annotation", c.Pause.Annotation)
	}
	if c.Reconcile != nil {
		take("reconcile.annotation", c.Reconcile.Annotation)
	}
	if c.Previous == nil {
		return
	}
	if h := c.Previous.Hash; h != nil {
		v.notGiven("conventions.previous.hash.annotation", h.Annotation, "conventions.annotations", c.Annotations)
		v.notGiven("conventions.previous.hash.label", h.Label, "conventions.labels", c.Labels)
		take("previous."+hash, h.Annotation)
	}
	if o := c.Previous.Owner; o != nil {
		v.notGiven("conventions.previous.owner.annotation", o.Annotation, "conventions.annotations", c.Annotations)
		take("previous."+owner, o.Annotation)
	}
}
