package inspect

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/corollary-dev/corollary/pkg/cli/command"
	"github.com/corollary-dev/corollary/pkg/survey/explain"
)

// printExplanation prints an explanation for people.
func printExplanation(w io.Writer, p command.Painter, e *explain.Explanation) {
	line := func(indent, text string) { fmt.Fprintln(w, indent+command.EscapeControl(command.OneLine(text))) }
	for _, part := range e.Parts {
		up := part.Upstream
		if up == nil {
			line("", part.Remark)
			continue
		}
		fmt.Fprintln(w, p.Paint(command.Bold, fmt.Sprintf("%s (operator %s)", up.Object, up.Operator)))
		for _, note := range up.Notes {
			line("  ", note)
		}
		for _, d := range up.Downstreams {
			fmt.Fprintln(w, p.Paint(signs[d.Action].color, headOf(d)))
			for _, note := range d.Notes {
				line("      ", note)
			}
			if d.Fields != "" {
				line("      ", d.Fields)
				printDiffs(w, p, "        ", d.Shown())
			}
		}
		for _, note := range up.LeftOver {
			line("  ", note)
		}
	}
}

// headOf is the first line about an object.
func headOf(d explain.Downstream) string {
	object := d.Object.Kind.Kind
	if d.Object.At.Name != "" {
		object = d.Object.String()
	}
	head := fmt.Sprintf("  downstream %s: %s: %s", d.Downstream, object, d.State)
	if d.Asked {
		head = strings.Replace(head, "  ", "> ", 1)
	}
	if d.Reason != "" {
		head += ": " + command.EscapeControl(command.OneLine(d.Reason))
	}
	return head
}

// jsonExplanation is an explanation as JSON. docs/cli.md describes it; what it says is not changed, only added to.
type jsonExplanation struct {
	Object    jsonObject   `json:"object"`
	Upstreams []jsonReason `json:"upstreams"`
	Notes     []string     `json:"notes,omitempty"`
}

type jsonReason struct {
	Operator    string          `json:"operator"`
	Upstream    jsonObject      `json:"upstream"`
	Notes       []string        `json:"notes,omitempty"`
	Downstreams []jsonExplained `json:"downstreams,omitempty"`
}

// jsonExplained is an item as a plan has it, with what else there is to say.
type jsonExplained struct {
	jsonItem
	Asked bool     `json:"asked,omitempty"`
	Notes []string `json:"notes,omitempty"`
}

// printExplanationJSON prints an explanation as one JSON object.
func printExplanationJSON(w io.Writer, e *explain.Explanation) error {
	out := jsonExplanation{Object: jsonOf(e.Object), Upstreams: []jsonReason{}}
	for _, part := range e.Parts {
		up := part.Upstream
		if up == nil {
			out.Notes = append(out.Notes, part.Remark)
			continue
		}
		reason := jsonReason{Operator: up.Operator, Upstream: jsonOf(up.Object), Notes: slices.Concat(up.Notes, up.LeftOver)}
		for _, d := range up.Downstreams {
			item := jsonItemOf(d.Item)
			item.Differences, item.Before, item.After = nil, nil, nil
			if d.Fields != "" {
				item.Differences = jsonDiffs(d.Diffs)
			}
			reason.Downstreams = append(reason.Downstreams, jsonExplained{jsonItem: item, Asked: d.Asked, Notes: d.Notes})
		}
		out.Upstreams = append(out.Upstreams, reason)
	}
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(out); err != nil {
		return fmt.Errorf("writing the explanation: %w", err)
	}
	return nil
}
