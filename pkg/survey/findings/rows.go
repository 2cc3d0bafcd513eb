package findings

import (
	"fmt"
	"time"

	kstatus "github.com/fluxcd/cli-utils/pkg/kstatus/status"

	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/compile"
	"github.com/corollary-dev/corollary/pkg/reconcile/preview"
)

// Row is one object in a list. Two rows that say the same are equal.
type Row struct {
	About
	Created time.Time
}

// Key is what a row is about; there is no other row of it.
func (r Row) Key() string {
	return fmt.Sprint(r.Operator, "\x00", r.Upstream.At, "\x00", r.Downstream, "\x00", r.Object.Kind, "\x00", r.Object.At)
}

// Rows are the objects of one upstream: downstreams that are wanted or exist, and what is left over.
func Rows(pl *compile.Pipeline, f *preview.Finding) []Row {
	left := leftRows(pl, f)
	if f.Upstream == nil {
		return left
	}
	recorded := map[string]string{}
	for _, r := range pl.Recorded(f.Upstream) {
		recorded[r.Name] = r.State
	}
	var rows []Row
	for _, c := range f.Changes {
		if IsAboutNothing(c) {
			continue
		}
		r := Row{aboutChange(pl, f, c), createdAt(c.Live)}
		switch {
		case c.Failure != nil:
			r.Reason = c.Failure.Reason + ": " + c.Failure.Message
		case c.State == operator.StateInvalid:
			r.Reason = invalidity(f)
		case c.State == operator.StateRepair && recorded[c.Downstream] == string(operator.StateContested):
			r.State = recorded[c.Downstream]
		case c.State == operator.StateInSync && c.Live != nil && c.Live.Status != kstatus.CurrentStatus:
			r.Reason = string(c.Live.Status) + ": " + pl.StatusMessage(c.Index, c.Live)
		case c.State == operator.StateInSync:
			if list := UnmetRules(pl, f, c); len(list) > 0 {
				r.Reason = list[0].Message
			}
		}
		rows = append(rows, r)
	}
	for _, r := range f.Forgotten {
		about := aboutForgotten(pl, f, r, "the config no longer has this downstream, or has it with another kind")
		about.State = string(operator.StateLeftover)
		rows = append(rows, Row{About: about})
	}
	return append(rows, left...)
}

// leftRows are the objects of an earlier upstream of that name.
func leftRows(pl *compile.Pipeline, f *preview.Finding) []Row {
	var rows []Row
	for _, c := range f.Left {
		about := aboutChange(pl, f, c)
		about.State = string(operator.StateLeftover)
		about.Reason = c.Reason +
			": if no other operator has these conventions, delete it, or let adoptionPolicy: IfUnowned take it over"
		rows = append(rows, Row{about, createdAt(c.Live)})
	}
	return rows
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
