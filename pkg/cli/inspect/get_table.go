package inspect

import (
	"sort"
	"sync"

	"github.com/corollary-dev/corollary/pkg/operator/compile"
	"github.com/corollary-dev/corollary/pkg/reconcile/preview"
	"github.com/corollary-dev/corollary/pkg/survey/findings"
)

// stateGone is the state of an object that was listed and is gone.
const stateGone = "Gone"

// getTable makes rows of findings and prints those that are wanted.
type getTable struct {
	wanted  func(state string) bool
	line    *progressLine
	printer *rowPrinter

	mu sync.Mutex
	// printed are the rows as they were printed last, by what they are about; nil if nobody follows.
	printed map[string]findings.Row
}

func (t *getTable) finding(pl *compile.Pipeline, f *preview.Finding) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.line.clear()
	for _, r := range findings.Rows(pl, f) {
		if err := t.print(r); err != nil {
			return err
		}
	}
	return nil
}

// update is finding for an upstream that was listed before: it reports what is gone, too.
func (t *getTable) update(pl *compile.Pipeline, f *preview.Finding) error {
	rows := findings.Rows(pl, f)
	is := map[string]bool{}
	for _, r := range rows {
		is[r.Key()] = true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	var gone []string
	for key, r := range t.printed {
		if r.Operator == f.Operator && r.Upstream.At == f.Ref && !is[key] {
			gone = append(gone, key)
		}
	}
	sort.Strings(gone)
	for _, key := range gone {
		r := t.printed[key]
		delete(t.printed, key)
		r.State, r.Reason = stateGone, ""
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
func (t *getTable) print(r findings.Row) error {
	if t.printed != nil {
		if t.printed[r.Key()] == r {
			return nil
		}
		if t.wanted(r.State) || t.printed[r.Key()] != (findings.Row{}) {
			t.printed[r.Key()] = r
			return t.printer.row(r)
		}
		return nil
	}
	if !t.wanted(r.State) {
		return nil
	}
	return t.printer.row(r)
}
