package config

import (
	"time"

	"github.com/corollary-dev/corollary/pkg/fieldpath"
)

// defaults returns an operator with the behavior that holds where the file is silent. Names have no defaults.
// Durations are given before decoding, for 0s is a value of its own.
func defaults() Operator {
	return Operator{
		ResyncPeriod: Duration(10 * time.Hour),
		Retry:        Retry{MinDelay: Duration(5 * time.Second), MaxDelay: Duration(5 * time.Minute)},
	}
}

func (f *File) fillSchema() {
	if s := f.Watch.Schema; s != nil {
		fill(&s.Scope, ScopeNamespaced)
		fill(&s.Plural, pluralOf(f.Watch.APIVersion, f.Watch.Kind))
	}
}

// fillDefaults gives every field that is empty after decoding its default.
func (f *File) fillDefaults() {
	op := &f.Operator
	f.fillSource()
	fill(&op.Mode, ModeEnforce)
	fill(&op.Events, EventsWarnings)
	fill(&op.Conventions.Hash.Algorithm, SHA256)
	fill(&op.Deletion.Propagation, PropagationBackground)
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
			fill(&op.Inputs[i].Missing, MissingWait)
		} else {
			fillInt(&list.MaxItems, 1000)
		}
	}
	for i := range op.Downstreams {
		op.Downstreams[i].fillDefaults()
	}
	if b := op.Deletion.Before; b != nil {
		fill(&b.When, "true")
		fill(&b.FailedWhen, "false")
		fill(&b.TargetNamespaces.From, NamespacesSame)
		fill(&b.OnFailure, BeforeHold)
		fill(&b.OnTimeout, BeforeHold)
		if b.Timeout == 0 && !f.given("deletion", "before", "timeout") {
			b.Timeout = Duration(time.Hour)
		}
	}
	if op.Guard == nil {
		op.Guard = &Guard{}
	}
	fill(&op.Guard.MaxDeleted, "10%")
	fillInt(&op.Guard.Minimum, 5)
}

func (d *Downstream) fillDefaults() {
	fill(&d.When, "true")
	if d.ForEach != nil {
		fillInt(&d.ForEach.MaxItems, 100)
	}
	for k := range d.After {
		fill(&d.After[k].Until, AfterReady)
	}
	d.fillGenerated()
	fill(&d.TargetNamespaces.From, NamespacesSame)
	fill(&d.AdoptionPolicy, AdoptNever)
	fill(&d.UpdatePolicy, UpdateApply)
	fill(&d.Ready.ObservedGeneration, ObservedAuto)
	fill(&d.Ownership, OwnershipObject)
	if d.ownsFields() {
		fill(&d.DeletionPolicy, DeletionOrphan) // what is not ours stays
	}
	fill(&d.DeletionPolicy, DeletionDelete)
	fill(&d.Drift.Policy, DriftEnforce)
}

// fillSource fills what follows from rows being the upstreams: they have a kind of their own, no status, and no owner references.
func (f *File) fillSource() {
	op, s := &f.Operator, f.Source
	if s == nil {
		return
	}
	no := false
	op.Watch.APIVersion, op.Watch.Kind = APIVersion, RowKind
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

func (f *File) fillDSN(from *DSNFrom) {
	if from.File != "" {
		from.File = f.Place(from.File)
	}
}

// fillRows fills the defaults of a query, and the places of its files.
func (f *File) fillRows(r *Rows) {
	if db := r.SQLite; db != nil && db.Path != "" {
		db.Path = f.Place(db.Path)
	}
	if server, _ := r.Server(); server != nil {
		f.fillDSN(&server.DSNFrom)
	}
	if r.Timeout == 0 {
		r.Timeout = Duration(30 * time.Second)
	}
	if r.Changes.Poll == 0 {
		r.Changes.Poll = Duration(30 * time.Second)
	}
	if c := &r.Changes; c.Cursor != "" {
		if c.Overlap == 0 {
			c.Overlap = Duration(time.Minute)
		}
		if c.Full == 0 {
			c.Full = Duration(10 * time.Minute)
		}
	}
	fillInt(&r.MaxRows, 10_000)
}

func fillInt(field **int, value int) {
	if *field == nil {
		*field = &value
	}
}

func (d *Downstream) fillGenerated() {
	for i := range d.Generated {
		g := &d.Generated[i]
		fill(&g.Charset, CharsetAlphanumeric)
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
	list, _ := f.values["downstreams"].([]any)
	if i >= len(list) {
		return false
	}
	d, _ := list[i].(map[string]any)
	return d["deletionPolicy"] != nil
}

// given reports whether a file or an override gives the value: for defaults of what may be zero too.
func (f *File) given(path ...string) bool {
	v, _ := fieldpath.Get(f.values, fieldpath.New(path...))
	return v != nil
}
