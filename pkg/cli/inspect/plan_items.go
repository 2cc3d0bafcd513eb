package inspect

import (
	"context"

	"github.com/corollary-dev/corollary/pkg/cli/command"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/reconcile/preview"
	"github.com/corollary-dev/corollary/pkg/survey"
	"github.com/corollary-dev/corollary/pkg/survey/findings"
)

// planning makes a plan and prints it as it goes.
type planning struct {
	options *planOptions
	line    *progressLine
	printer planPrinter
	counts  map[string]int
	// note is where notes on operators go.
	note noteFunc
}

// planPrinter writes items in their order. stop ends an incomplete plan, after an error.
type planPrinter interface {
	item(findings.Item) error
	stop() error
	end(counts map[string]int) error
}

func newPlanning(o *planOptions, line *progressLine) *planning {
	p := &planning{options: o, line: line, counts: map[string]int{}}
	p.note = line.note
	switch o.output.Value {
	case command.JSON:
		p.printer = &planJSON{jsonList{w: o.streams.Out}}
	case markdown:
		m := &planMarkdown{w: o.streams.Out, noDiff: o.noDiff}
		p.printer, p.note = m, m.note
	default:
		p.printer = &planText{w: o.streams.Out, painter: o.color.Painter(o.streams), noDiff: o.noDiff}
	}
	return p
}

// planOperator plans one operator.
func (p *planning) planOperator(ctx context.Context, v *survey.Survey) error {
	return p.visit(ctx, v, v.Refs(), func(f *preview.Finding) error {
		for _, item := range findings.Items(v.Pipeline(), f) {
			if err := p.add(item); err != nil {
				return err
			}
		}
		return nil
	})
}

// visit looks at upstreams, and says where the operator's guard would hold up what is found.
func (p *planning) visit(
	ctx context.Context, v *survey.Survey, refs []operator.Ref, plan func(*preview.Finding) error,
) error {
	steps := v.Steps()
	held, err := v.VisitCounting(ctx, refs, func(f *preview.Finding) error {
		steps.Add(ctx, f)
		return plan(f)
	})
	if err != nil {
		return err
	}
	if text := steps.StepsText(steps.End()); text != "" {
		p.note("operator %s: run rolls this out in steps: %s", v.Pipeline().Name, text)
	}
	if held == nil {
		return nil
	}
	if held.Confirmed {
		p.note("operator %s: %s: that is confirmed, with the digest %s, so run does it",
			v.Pipeline().Name, held.Text, held.Digest)
	} else {
		p.note("operator %s: %s: run waits until that is confirmed, with the digest %s",
			v.Pipeline().Name, held.Text, held.Digest)
	}
	return nil
}

// add counts an item, and prints it where it is worth it.
func (p *planning) add(item findings.Item) error {
	p.counts[item.Action]++
	if item.Action == string(preview.None) {
		return nil
	}
	p.line.clear()
	return p.printer.item(item)
}

// end prints the counts. The error is the exit code that says that something would change.
func (p *planning) end() error {
	if err := p.printer.end(p.counts); err != nil {
		return err
	}
	changes := p.counts[findings.ActionFinalizer]
	for action, n := range p.counts {
		if preview.Action(action).Writes() && action != findings.ActionLeftover && action != findings.ActionFinalizer {
			changes += n
		}
	}
	if len(p.options.against.Files) > 0 {
		changes += p.counts[findings.ActionLeftover]
	}
	if changes > 0 {
		return &command.ExitError{Code: command.ExitChanges}
	}
	return nil
}
