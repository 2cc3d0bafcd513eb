package cli

import (
	"encoding/json"
	"fmt"
	"github.com/corollary-dev/corollary/pkg/cli/command"
	"io"
	"strings"

	"github.com/corollary-dev/corollary/pkg/survey/findings"
)

// explanationWriter takes down an explanation as it is found: upstreams, about each of them texts and objects, about an object texts and
// the fields of its next write.
type explanationWriter interface {
	upstream(operator string, up findings.Object)
	// about writes something about the upstream.
	about(text string)
	object(item findings.Item, asked bool)
	// detail writes something about the object.
	detail(text string)
	// fields writes the fields that an object's next write changes, after a heading.
	fields(heading string, item findings.Item)
	// remark writes something that is not about one upstream.
	remark(text string)
	end() error
}

// whyText prints an explanation as it comes.
type whyText struct {
	w       io.Writer
	painter command.Painter
}

func (t *whyText) upstream(operator string, up findings.Object) {
	fmt.Fprintln(t.w, t.painter.Paint(command.Bold, fmt.Sprintf("%s (operator %s)", up, operator)))
}

func (t *whyText) about(text string) { fmt.Fprintln(t.w, "  "+command.EscapeControl(oneLine(text))) }

func (t *whyText) object(item findings.Item, asked bool) {
	object := item.Object.Kind.Kind
	if item.Object.At.Name != "" {
		object = item.Object.String()
	}
	head := fmt.Sprintf("  downstream %s: %s: %s", item.Downstream, object, item.State)
	if asked {
		head = strings.Replace(head, "  ", "> ", 1)
	}
	if item.Reason != "" {
		head += ": " + command.EscapeControl(oneLine(item.Reason))
	}
	fmt.Fprintln(t.w, t.painter.Paint(signs[item.Action].color, head))
}

func (t *whyText) detail(text string) {
	fmt.Fprintln(t.w, "      "+command.EscapeControl(oneLine(text)))
}

func (t *whyText) fields(heading string, item findings.Item) {
	t.detail(heading)
	printDiffs(t.w, t.painter, "        ", item.Shown())
}

func (t *whyText) remark(text string) { fmt.Fprintln(t.w, command.EscapeControl(oneLine(text))) }

func (t *whyText) end() error { return nil }

// whyJSON prints an explanation as one JSON object, once all of it is there. docs/cli.md describes it; what it says is not
// changed, only added to.
type whyJSON struct {
	w   io.Writer
	out jsonExplanation
}

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

func newWhyJSON(w io.Writer, asked findings.Object) *whyJSON {
	return &whyJSON{w: w, out: jsonExplanation{Object: jsonOf(asked), Upstreams: []jsonReason{}}}
}

func (j *whyJSON) upstream(operator string, up findings.Object) {
	j.out.Upstreams = append(j.out.Upstreams, jsonReason{Operator: operator, Upstream: jsonOf(up)})
}

// current is the upstream that is being explained.
func (j *whyJSON) current() *jsonReason { return &j.out.Upstreams[len(j.out.Upstreams)-1] }

func (j *whyJSON) about(text string) { j.current().Notes = append(j.current().Notes, text) }

func (j *whyJSON) object(item findings.Item, asked bool) {
	out := jsonItemOf(item)
	out.Differences, out.Before, out.After = nil, nil, nil
	j.current().Downstreams = append(j.current().Downstreams, jsonExplained{jsonItem: out, Asked: asked})
}

// last is the object that is being explained.
func (j *whyJSON) last() *jsonExplained {
	list := j.current().Downstreams
	return &list[len(list)-1]
}

func (j *whyJSON) detail(text string) { j.last().Notes = append(j.last().Notes, text) }

func (j *whyJSON) fields(_ string, item findings.Item) { j.last().Differences = jsonDiffs(item.Diffs) }

func (j *whyJSON) remark(text string) { j.out.Notes = append(j.out.Notes, text) }

func (j *whyJSON) end() error {
	encoder := json.NewEncoder(j.w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(j.out); err != nil {
		return fmt.Errorf("writing the explanation: %w", err)
	}
	return nil
}
