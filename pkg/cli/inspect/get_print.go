package inspect

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/corollary-dev/corollary/pkg/cli/command"

	"github.com/corollary-dev/corollary/pkg/survey/findings"
)

// reasonWidth is how much of a reason a list shows that is not wide.
const reasonWidth = 60

// rowPrinter writes rows: a table, one JSON object for all (one for each where someone follows), or names.
type rowPrinter struct {
	w        io.Writer
	format   string
	watching bool
	list     jsonList
	begun    bool
	// lines wait for the widths of their columns, which only grow.
	lines  [][]string
	widths []int
}

type jsonRow struct {
	Operator   string     `json:"operator"`
	Upstream   jsonObject `json:"upstream"`
	Downstream string     `json:"downstream"`
	Object     jsonObject `json:"object"`
	State      string     `json:"state"`
	Reason     string     `json:"reason,omitempty"`
	Created    string     `json:"creationTimestamp,omitempty"`
}

func (p *rowPrinter) row(r findings.Row) error {
	var err error
	switch p.format {
	case "json":
		err = p.writeJSON(r)
	case "name":
		err = p.writeName(r)
	default:
		p.writeText(r)
	}
	if err != nil {
		return fmt.Errorf("writing the list: %w", err)
	}
	return nil
}

func (p *rowPrinter) writeText(r findings.Row) {
	wide := p.format == "wide"
	if !p.begun {
		head := []string{"OPERATOR", "UPSTREAM", "DOWNSTREAM", "OBJECT", "STATE", "REASON", "AGE"}
		if wide {
			head = append(head, "UID")
		}
		p.lines, p.begun = append(p.lines, head), true
	}
	reason := []rune(command.EscapeControl(command.OneLine(r.Reason)))
	if !wide && len(reason) > reasonWidth {
		reason = append(reason[:reasonWidth-1], '…')
	}
	object := r.Object.Kind.Kind
	if r.Object.At.Name != "" {
		object = r.Object.String()
	}
	age := ""
	if !r.Created.IsZero() {
		age = duration.HumanDuration(time.Since(r.Created))
	}
	cells := []string{r.Operator, r.Upstream.String(), r.Downstream, object, r.State, string(reason), age}
	if wide {
		cells = append(cells, r.Object.UID)
	}
	p.lines = append(p.lines, cells)
}

func (p *rowPrinter) writeJSON(r findings.Row) error {
	out := jsonRow{Operator: r.Operator, Upstream: jsonOf(r.Upstream), Downstream: r.Downstream,
		Object: jsonOf(r.Object), State: r.State,
		Reason: r.Reason}
	if !r.Created.IsZero() {
		out.Created = r.Created.Format(time.RFC3339)
	}
	if p.watching {
		return json.NewEncoder(p.w).Encode(out)
	}
	return p.list.add(out)
}

// writeName writes an object as kubectl names it, with its namespace.
func (p *rowPrinter) writeName(r findings.Row) error {
	if r.Object.At.Name == "" {
		return nil
	}
	name := strings.ToLower(r.Object.Kind.Kind)
	if r.Object.Kind.Group != "" {
		name += "." + r.Object.Kind.Group
	}
	name += "/" + r.Object.At.Name
	if r.Object.At.Namespace != "" {
		name = "-n " + r.Object.At.Namespace + " " + name
	}
	_, err := fmt.Fprintln(p.w, name)
	return err
}

// flush writes what waits for the width of its columns to be known.
func (p *rowPrinter) flush() error {
	for _, cells := range p.lines {
		for i, cell := range cells {
			if i == len(p.widths) {
				p.widths = append(p.widths, 0)
			}
			p.widths[i] = max(p.widths[i], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	for _, cells := range p.lines {
		var line strings.Builder
		for i, cell := range cells {
			fmt.Fprintf(&line, "%-*s   ", p.widths[i], cell)
		}
		fmt.Fprintln(&b, strings.TrimRight(line.String(), " "))
	}
	p.lines = nil
	if _, err := io.WriteString(p.w, b.String()); err != nil {
		return fmt.Errorf("writing the list: %w", err)
	}
	return nil
}

func (p *rowPrinter) end() error {
	if p.format == "json" && !p.watching {
		if err := p.list.finish(""); err != nil {
			return fmt.Errorf("writing the list: %w", err)
		}
	}
	return p.flush()
}
