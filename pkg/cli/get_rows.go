package cli

import (
	"fmt"
	"sort"
	"sync"
	"time"

	kstatus "github.com/fluxcd/cli-utils/pkg/kstatus/status"

	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/pipeline"
	"github.com/corollary-dev/corollary/pkg/reconcile"
)

// row is one object in a list.
type row struct {
	operator   string
	upstream   objectRef
	downstream string
	object     objectRef
	state      string
	reason     string
	created    time.Time
}

// stateGone is the state of an object that was listed and is gone.
const stateGone = "Gone"

// getTable makes rows of findings and prints those that are wanted.
type getTable struct {
	options *getOptions
	line    *progressLine
	printer *rowPrinter

	mu sync.Mutex
	// printed are the rows as they were printed last, by what they are about; nil if nobody follows.
	printed map[string]row
}

func (t *getTable) finding(pl *pipeline.Pipeline, f *reconcile.Finding) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.line.clear()
	for _, r := range rowsOf(pl, f) {
		if err := t.print(r); err != nil {
			return err
		}
	}
	return nil
}

// update is finding for an upstream that was listed before: it reports what is gone, too.
func (t *getTable) update(pl *pipeline.Pipeline, f *reconcile.Finding) error {
	rows := rowsOf(pl, f)
	is := map[string]bool{}
	for _, r := range rows {
		is[r.key()] = true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	var gone []string
	for key, r := range t.printed {
		if r.operator == f.Operator && r.upstream.at == f.Ref && !is[key] {
			gone = append(gone, key)
		}
	}
	sort.Strings(gone)
	for _, key := range gone {
		r := t.printed[key]
		delete(t.printed, key)
		r.state, r.reason = stateGone, ""
		if err := t.printer.row(r); err != nil {
			return err
		}
	}
	for _, r := range rows {
		if err := t.print(r); err != nil {
			return err
		}
	}
	return t.printer.flush()
}

// print prints a row that is wanted and, where someone follows, says something new.
func (t *getTable) print(r row) error {
	if t.printed != nil {
		if t.printed[r.key()] == r {
			return nil
		}
		if t.options.wanted(r.state) || t.printed[r.key()] != (row{}) {
			t.printed[r.key()] = r
			return t.printer.row(r)
		}
		return nil
	}
	if !t.options.wanted(r.state) {
		return nil
	}
	return t.printer.row(r)
}

func (r row) key() string {
	return fmt.Sprint(r.operator, "\x00", r.upstream.at, "\x00", r.downstream, "\x00", r.object.gvk, "\x00", r.object.at)
}

// isAboutNothing reports whether a change is about a downstream that is neither wanted nor there.
func isAboutNothing(c reconcile.Change) bool {
	return c.State == pipeline.StateUnwanted && c.Live == nil
}

// rowsOf are the objects of one upstream: downstreams that are wanted or stand, and what is left over.
func rowsOf(pl *pipeline.Pipeline, f *reconcile.Finding) []row {
	up := upstreamOf(pl, f)
	left := leftRows(f, up)
	if f.Upstream == nil {
		return left
	}
	recorded := map[string]string{}
	for _, r := range pl.Recorded(f.Upstream) {
		recorded[r.Name] = r.State
	}
	var rows []row
	for _, c := range f.Changes {
		if isAboutNothing(c) {
			continue
		}
		r := row{operator: f.Operator, upstream: up, downstream: c.Downstream, object: objectOf(c), state: string(c.State),
			reason: reasonOf(f, c), created: createdAt(c.Live)}
		switch {
		case c.Failure != nil:
			r.reason = c.Failure.Reason + ": " + c.Failure.Message
		case c.State == pipeline.StateInvalid:
			r.reason = invalidity(f)
		case c.State == pipeline.StateRepair && recorded[c.Downstream] == string(pipeline.StateContested):
			r.state = recorded[c.Downstream]
		case c.State == pipeline.StateInSync && c.Live != nil && c.Live.Status != kstatus.CurrentStatus:
			r.reason = string(c.Live.Status) + ": " + pl.StatusMessage(c.Index, c.Live)
		case c.State == pipeline.StateInSync:
			if list := unmetRules(pl, f, c); len(list) > 0 {
				r.reason = list[0].Message
			}
		}
		rows = append(rows, r)
	}
	for _, r := range f.Forgotten {
		rows = append(rows, row{operator: f.Operator, upstream: up, downstream: r.Name, object: forgottenRef(r),
			state:  string(pipeline.StateLeftover),
			reason: "the config no longer has this downstream, or has it with another kind" + toDelete(f, forgottenRef(r))})
	}
	return append(rows, left...)
}

// leftRows are the objects of an earlier upstream of that name.
func leftRows(f *reconcile.Finding, up objectRef) []row {
	var rows []row
	for _, c := range f.Left {
		rows = append(rows, row{operator: f.Operator, upstream: up, downstream: c.Downstream, object: objectOf(c),
			state: string(pipeline.StateLeftover), created: createdAt(c.Live),
			reason: c.Reason + ": if no other operator has these conventions, delete it, or let adoptionPolicy: IfUnowned take it over"})
	}
	return rows
}

// objectOf names the object of a change: its target, or the live object if there is none.
func objectOf(c reconcile.Change) objectRef {
	ref := objectRef{gvk: c.Kind, at: c.Target}
	if c.Live == nil {
		return ref
	}
	ref.uid = string(c.Live.UID)
	if ref.at.Name == "" {
		ref.at = pipeline.Ref{Namespace: c.Live.Namespace, Name: c.Live.Name}
	}
	return ref
}

// createdAt is when an object was made, as far as the cache keeps it.
func createdAt(live *drift.Live) time.Time {
	if live == nil {
		return time.Time{}
	}
	v, _ := fieldpath.Get(live.Kept, fieldpath.New("metadata", "creationTimestamp"))
	text, _ := v.(string)
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}
	}
	return at
}
