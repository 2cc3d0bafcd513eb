package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/duration"
)

// reasonWidth is how much of a reason a list shows that is not wide.
const reasonWidth = 60

// rowPrinter writes rows: a table, one JSON object for all (one for each where someone follows), or names.
type rowPrinter struct {
	w        io.Writer
	format   string
	watching bool
	begun    bool
	// lines wait for the widths of their columns, which only grow.
	lines  [][]string
	widths []int
}

func newRowPrinter(o *getOptions) *rowPrinter {
	return &rowPrinter{w: o.streams.Out, format: o.output.value, watching: o.watch}
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

func (p *rowPrinter) row(r row) error {
	var err error
	switch p.format {
	case "json":
		err = p.json(r)
	case "name":
		err = p.name(r)
	default:
		p.text(r)
	}
	if err != nil {
		return fmt.Errorf("writing the list: %w", err)
	}
	return nil
}

func (p *rowPrinter) text(r row) {
	wide := p.format == "wide"
	if !p.begun {
		head := []string{"OPERATOR", "UPSTREAM", "DOWNSTREAM", "OBJECT", "STATE", "REASON", "AGE"}
		if wide {
			head = append(head, "UID")
		}
		p.lines, p.begun = append(p.lines, head), true
	}
	reason := []rune(escapeControl(oneLine(r.reason)))
	if !wide && len(reason) > reasonWidth {
		reason = append(reason[:reasonWidth-1], '…')
	}
	object := r.object.gvk.Kind
	if r.object.at.Name != "" {
		object = r.object.String()
	}
	age := ""
	if !r.created.IsZero() {
		age = duration.HumanDuration(time.Since(r.created))
	}
	cells := []string{r.operator, r.upstream.String(), r.downstream, object, r.state, string(reason), age}
	if wide {
		cells = append(cells, r.object.uid)
	}
	p.lines = append(p.lines, cells)
}

func (p *rowPrinter) json(r row) error {
	out := jsonRow{Operator: r.operator, Upstream: jsonOf(r.upstream), Downstream: r.downstream, Object: jsonOf(r.object), State: r.state,
		Reason: r.reason}
	if !r.created.IsZero() {
		out.Created = r.created.Format(time.RFC3339)
	}
	if p.watching {
		return json.NewEncoder(p.w).Encode(out)
	}
	head := ",\n"
	if !p.begun {
		head, p.begun = `{"items": [`+"\n", true
	}
	text, err := compactJSON(out)
	if err == nil {
		_, err = fmt.Fprint(p.w, head, text)
	}
	return err
}

// name writes an object as kubectl names it, with its namespace.
func (p *rowPrinter) name(r row) error {
	if r.object.at.Name == "" {
		return nil
	}
	name := strings.ToLower(r.object.gvk.Kind)
	if r.object.gvk.Group != "" {
		name += "." + r.object.gvk.Group
	}
	name += "/" + r.object.at.Name
	if r.object.at.Namespace != "" {
		name = "-n " + r.object.at.Namespace + " " + name
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
		text := "\n]}\n"
		if !p.begun {
			text = "{\"items\": []}\n"
		}
		if _, err := fmt.Fprint(p.w, text); err != nil {
			return fmt.Errorf("writing the list: %w", err)
		}
	}
	return p.flush()
}
