package pipeline

import "strconv"

// ShardLabel is the label of downstreams that has the virtual shard of their upstream; "" for none.
func (p *Pipeline) ShardLabel() string {
	if s := p.Config.Conventions.Shard; s != nil {
		return s.Label
	}
	return ""
}

// ShardLabelValue is the value of that label.
func ShardLabelValue(shard int) string { return strconv.Itoa(shard) }

// WithShard returns a document that is to be sent with the label of a shard, if the config has one.
func (p *Pipeline) WithShard(doc map[string]any, shard int) map[string]any {
	if p.ShardLabel() == "" {
		return doc
	}
	return withMeta(doc, "labels", p.ShardLabel(), ShardLabelValue(shard))
}
