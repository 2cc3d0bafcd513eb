package config

// ConventionKey is an annotation or a label that only Corollary, or whoever operates it, is to write.
type ConventionKey struct {
	Path              string // below conventions
	Annotation, Label string // one of them, or none where the config does not name it
}

// Keys are all keys that conventions name, those of conventions.previous too. What every downstream gets (labels,
// annotations) is not among them.
func (c *Conventions) Keys() []ConventionKey {
	keys := []ConventionKey{
		{Path: "hash.annotation", Annotation: c.Hash.Annotation},
		{Path: "hash.label", Label: c.Hash.Label},
		{Path: "owner.annotation", Annotation: c.Owner.Annotation},
	}
	if c.DownstreamName != nil {
		keys = append(keys, ConventionKey{Path: "downstreamName.annotation", Annotation: c.DownstreamName.Annotation})
	}
	if c.Pause != nil {
		keys = append(keys, ConventionKey{Path: "pause.annotation", Annotation: c.Pause.Annotation})
	}
	if c.Reconcile != nil {
		keys = append(keys, ConventionKey{Path: "reconcile.annotation", Annotation: c.Reconcile.Annotation})
	}
	if c.ActivationToken != nil {
		keys = append(keys, ConventionKey{Path: "activationToken.annotation", Annotation: c.ActivationToken.Annotation})
	}
	if c.Shard != nil {
		keys = append(keys, ConventionKey{Path: "shard.label", Label: c.Shard.Label})
	}
	if c.Rollout != nil {
		keys = append(keys, ConventionKey{Path: "rollout.annotation", Annotation: c.Rollout.Annotation})
	}
	if c.Previous == nil {
		return keys
	}
	if h := c.Previous.Hash; h != nil {
		keys = append(keys, ConventionKey{Path: "previous.hash.annotation", Annotation: h.Annotation},
			ConventionKey{Path: "previous.hash.label", Label: h.Label})
	}
	if o := c.Previous.Owner; o != nil {
		keys = append(keys, ConventionKey{Path: "previous.owner.annotation", Annotation: o.Annotation})
	}
	return keys
}
