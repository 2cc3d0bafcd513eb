package validate

// checkDistinct reports an annotation that would have to hold two things. Those of upstreams and of downstreams are
// compared too: what is downstream here may be upstream to another operator. What was used before counts as used, for
// it is read still; that it differs from its own successor is said elsewhere.
func checkDistinct(v *validator) {
	c := &v.Conventions
	checkNotGiven(v, "conventions.owner.annotation", c.Owner.Annotation, "conventions.annotations", c.Annotations)
	if c.DownstreamName != nil {
		checkNotGiven(v, "conventions.downstreamName.annotation", c.DownstreamName.Annotation,
			"conventions.annotations", c.Annotations)
	}
	if c.ActivationToken != nil {
		checkNotGiven(v, "conventions.activationToken.annotation", c.ActivationToken.Annotation,
			"conventions.annotations", c.Annotations)
	}
	if c.Rollout != nil {
		checkNotGiven(v, "conventions.rollout.annotation", c.Rollout.Annotation, "conventions.annotations", c.Annotations)
	}
	checkShard(v)
	if p := c.Previous; p != nil && p.Hash != nil {
		checkNotGiven(v, "conventions.previous.hash.annotation", p.Hash.Annotation, "conventions.annotations", c.Annotations)
		checkNotGiven(v, "conventions.previous.hash.label", p.Hash.Label, "conventions.labels", c.Labels)
	}
	if p := c.Previous; p != nil && p.Owner != nil {
		checkNotGiven(v, "conventions.previous.owner.annotation", p.Owner.Annotation,
			"conventions.annotations", c.Annotations)
	}
	used := map[string]string{}
	for _, key := range c.Keys() {
		switch other, taken := used[key.Annotation]; {
		case key.Annotation == "":
		case taken && key.Path != "previous."+other:
			v.Add("conventions."+key.Path, "choose another key", "%s is conventions.%s too", key.Annotation, other)
		case !taken:
			used[key.Annotation] = key.Path
		}
	}
}

func checkShard(v *validator) {
	const at = "conventions.shard.label"
	shard := v.Conventions.Shard
	if shard == nil {
		return
	}
	checkNotGiven(v, at, shard.Label, "conventions.labels", v.Conventions.Labels)
	if shard.Label != "" && shard.Label == v.Conventions.Hash.Label {
		v.Add(at, "choose another key", "%s is conventions.hash.label too", shard.Label)
	}
	if v.Source == nil && v.Status.Downstreams == "" {
		v.Add(at, "set status.downstreams",
			"without a record, nobody finds an object whose shard and name change in one rollout: "+
				"the watch of each process selects by this label")
	}
}
