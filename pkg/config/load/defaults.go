package load

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/config/common"
	"github.com/corollary-dev/corollary/pkg/config/query"
	"github.com/corollary-dev/corollary/pkg/config/random"
	"github.com/corollary-dev/corollary/pkg/config/staged"
)

// defaults returns an operator with the behavior that holds where the file is silent. Names have no defaults.
// Durations are given before decoding, for 0s is a value of its own.
func defaults() config.Operator {
	return config.Operator{
		ResyncPeriod: common.Duration(10 * time.Hour),
		Retry:        config.Retry{MinDelay: common.Duration(5 * time.Second), MaxDelay: common.Duration(5 * time.Minute)},
	}
}

func (f *File) fillSchema() {
	if s := f.Watch.Schema; s != nil {
		fill(&s.Scope, config.ScopeNamespaced)
		fill(&s.Plural, pluralOf(f.Watch.APIVersion, f.Watch.Kind))
	}
}

// fillDefaults gives every field that is empty after decoding its default.
func (f *File) fillDefaults() {
	op := &f.Operator
	f.fillSource()
	fill(&op.Mode, config.ModeEnforce)
	fill(&op.Events, config.EventsWarnings)
	fill(&op.Conventions.Hash.Algorithm, config.SHA256)
	fill(&op.Deletion.Propagation, config.PropagationBackground)
	fillTrue(&op.Conventions.Owner.Reference)
	fillTrue(&op.Status.Enabled)
	if op.Delimiters == nil {
		op.Delimiters = []string{"{{", "}}"}
	}
	f.fillSchema()
	for i := range op.Validate {
		fill(&op.Validate[i].Reason, "FieldValueInvalid")
	}
	for i := range op.Inputs {
		if rows := op.Inputs[i].SQL; rows != nil {
			f.fillRows(rows)
		}
		if list := op.Inputs[i].List; list == nil {
			fill(&op.Inputs[i].Missing, config.MissingWait)
		} else {
			fillInt(&list.MaxItems, 1000)
		}
	}
	for i := range op.Downstreams {
		fillDownstream(&op.Downstreams[i])
	}
	if b := op.Deletion.Before; b != nil {
		fill(&b.When, "true")
		fill(&b.FailedWhen, "false")
		fill(&b.TargetNamespaces.From, config.NamespacesSame)
		fill(&b.OnFailure, config.BeforeHold)
		fill(&b.OnTimeout, config.BeforeHold)
		if b.Timeout == 0 && !f.Given("deletion", "before", "timeout") {
			b.Timeout = common.Duration(time.Hour)
		}
	}
	if op.Guard == nil {
		op.Guard = &config.Guard{}
	}
	fill(&op.Guard.MaxDeleted, "10%")
	fillInt(&op.Guard.Minimum, 5)
	if r := op.Rollout; r != nil {
		fill(&r.OnHalt, staged.HaltHold)
		if r.ProgressDeadline == 0 && !f.Given("rollout", "progressDeadline") {
			r.ProgressDeadline = common.Duration(10 * time.Minute)
		}
	}
}

func fillDownstream(d *config.Downstream) {
	fill(&d.When, "true")
	if d.ForEach != nil {
		fillInt(&d.ForEach.MaxItems, 100)
	}
	for k := range d.After {
		fill(&d.After[k].Until, config.AfterReady)
	}
	fillGenerated(d)
	fill(&d.TargetNamespaces.From, config.NamespacesSame)
	fill(&d.AdoptionPolicy, config.AdoptNever)
	fill(&d.UpdatePolicy, config.UpdateApply)
	fill(&d.Ready.ObservedGeneration, config.ObservedAuto)
	fill(&d.Ownership, config.OwnershipObject)
	if d.OwnsFields() {
		fill(&d.DeletionPolicy, config.DeletionOrphan) // what is not ours stays
	}
	fill(&d.DeletionPolicy, config.DeletionDelete)
	fill(&d.Drift.Policy, config.DriftEnforce)
}

// fillSource fills what follows from rows being the upstreams: they have a kind of their own, no status, and no owner
// references.
func (f *File) fillSource() {
	op, s := &f.Operator, f.Source
	if s == nil {
		return
	}
	no := false
	op.Watch.APIVersion, op.Watch.Kind = config.APIVersion, query.RowKind
	op.Conventions.Owner.Reference = &no
	if op.Status.Enabled == nil {
		op.Status.Enabled = &no
	}
	f.fillRows(&s.Rows)
	if s.WriteDSNFrom != nil {
		f.fillDSN(s.WriteDSNFrom)
	}
	fillInt(&s.Deletes.MaxPercent, 10)
	fillInt(&s.Deletes.Minimum, 5)
}

func (f *File) fillDSN(from *query.DSNFrom) {
	if from.File != "" {
		from.File = f.Place(from.File)
	}
}

// fillRows fills the defaults of a query, and the places of its files.
func (f *File) fillRows(r *query.Rows) {
	if db := r.SQLite; db != nil && db.Path != "" {
		db.Path = f.Place(db.Path)
	}
	if server, _ := r.Server(); server != nil {
		f.fillDSN(&server.DSNFrom)
	}
	if r.Timeout == 0 {
		r.Timeout = common.Duration(30 * time.Second)
	}
	if r.Changes.Poll == 0 {
		r.Changes.Poll = common.Duration(30 * time.Second)
	}
	if c := &r.Changes; c.Cursor != "" {
		if c.Overlap == 0 {
			c.Overlap = common.Duration(time.Minute)
		}
		if c.Full == 0 {
			c.Full = common.Duration(10 * time.Minute)
		}
	}
	fillInt(&r.MaxRows, 10_000)
}

func fillInt(field **int, value int) {
	if *field == nil {
		*field = &value
	}
}

func fillGenerated(d *config.Downstream) {
	for i := range d.Generated {
		g := &d.Generated[i]
		fill(&g.Charset, random.CharsetAlphanumeric)
		fillInt(&g.Length, 32)
	}
}

func fill[T ~string](field *T, value T) {
	if *field == "" {
		*field = value
	}
}

func fillTrue(field **bool) {
	if *field == nil {
		yes := true
		*field = &yes
	}
}

// GivesDeletionPolicy reports whether the config sets the deletionPolicy of downstream i.
func (f *File) GivesDeletionPolicy(i int) bool {
	list, _ := f.Values["downstreams"].([]any)
	if i >= len(list) {
		return false
	}
	d, _ := list[i].(map[string]any)
	return d["deletionPolicy"] != nil
}

// pluralOf is the regular name of a kind's resource; empty for no kind.
func pluralOf(apiVersion, kind string) string {
	if kind == "" {
		return ""
	}
	plural, _ := meta.UnsafeGuessKindToResource(schema.FromAPIVersionAndKind(apiVersion, kind))
	return plural.Resource
}
