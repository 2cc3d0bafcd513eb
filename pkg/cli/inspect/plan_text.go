package inspect

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/corollary-dev/corollary/pkg/cli/command"
	"github.com/corollary-dev/corollary/pkg/reconcile/preview"
	"github.com/corollary-dev/corollary/pkg/survey/findings"
)

// planText prints a plan for people, grouped by upstream.
type planText struct {
	w io.Writer
	// risks are what would be lost. They are printed first, so the rest is kept in body until the end.
	risks   []string
	body    bytes.Buffer
	painter command.Painter
	noDiff  bool
	last    string
	// groups has the items whose fields change in one and the same way, by that way; order is that of the first of each.
	groups map[string]*sameChange
	order  []*sameChange
}

// sameChange is an item that was printed, and the objects that change as it does.
type sameChange struct {
	first findings.Item
	more  []string
}

// shownOfGroup bounds how many objects of a group are named.
const shownOfGroup = 10

// signs are the signs and words of actions.
var signs = map[string]struct{ sign, word, color string }{
	string(preview.Create):    {"+", "create", command.Green},
	string(preview.Update):    {"~", "update", command.Yellow},
	string(preview.Repair):    {"~", "repair", command.Yellow},
	string(preview.Recreate):  {"-/+", "recreate", command.Red},
	string(preview.Supersede): {"-", "delete", command.Red},
	string(preview.Delete):    {"-", "delete", command.Red},
	string(preview.Release):   {"^", "release", command.Yellow},
	string(preview.Refuse):    {"!", "refused", command.Red},
	string(preview.Conflict):  {"!", "conflict", command.Red},
	string(preview.Wait):      {"*", "waits", command.Dim},
	string(preview.Leave):     {"=", "left", command.Dim},
	findings.ActionFinalizer:  {"~", "finalizer", command.Yellow},
	findings.ActionLeftover:   {"?", "left over", command.Yellow},
}

func (t *planText) item(item findings.Item) error {
	if t.grouped(item) {
		return nil
	}
	if item.Risk != "" {
		t.risks = append(t.risks, fmt.Sprintf("%s %s: %s", item.Upstream, item.Object, item.Risk))
	}
	head := fmt.Sprintf("%s (operator %s)", item.Upstream, item.Operator)
	if head != t.last {
		if t.last != "" {
			fmt.Fprintln(&t.body)
		}
		fmt.Fprintln(&t.body, t.painter.Paint(command.Bold, head))
		t.last = head
	}
	mark := signs[item.Action]
	what := item.Object.String()
	if item.Action == findings.ActionFinalizer {
		what = ""
	} else if item.Object.At.Name == "" {
		what = "downstream " + item.Downstream
	}
	line := strings.TrimRight(fmt.Sprintf("  %s %s %s", mark.sign, mark.word, what), " ")
	fmt.Fprintln(&t.body, t.painter.Paint(mark.color, line)+": "+command.EscapeControl(command.OneLine(whyOf(item))))
	if item.Note != "" {
		fmt.Fprintln(&t.body, "      "+t.painter.Paint(command.Dim,
			"("+command.EscapeControl(command.OneLine(item.Note))+")"))
	}
	if !t.noDiff {
		printDiffs(&t.body, t.painter, "      ", item.Shown())
	}
	return nil
}

// whyOf says why an item is in a plan.
func whyOf(item findings.Item) string {
	switch {
	case item.Failure != nil:
		return item.Failure.Reason + ": " + item.Failure.Message
	case item.Action == string(preview.Leave) && item.State != "":
		return item.State + ": " + item.Reason
	}
	return item.Reason
}

// grouped notes an item that changes as one before does, which end names; it is false for the first of its kind.
func (t *planText) grouped(item findings.Item) bool {
	if t.noDiff || item.Before == nil || len(item.Diffs) == 0 || item.Failure != nil {
		return false
	}
	var text strings.Builder
	printDiffs(&text, command.Painter{}, "", item.Shown())
	key := strings.Join([]string{item.Operator, item.Downstream, item.Action, item.State, item.Reason,
		item.Note, text.String()}, "\x00")
	if g := t.groups[key]; g != nil {
		g.more = append(g.more, item.Object.At.String())
		return true
	}
	g := &sameChange{first: item}
	if t.groups == nil {
		t.groups = map[string]*sameChange{}
	}
	t.groups[key], t.order = g, append(t.order, g)
	return false
}

// endGroups names the objects that change as one that was printed.
func (t *planText) endGroups() {
	for _, g := range t.order {
		if len(g.more) == 0 {
			continue
		}
		named := strings.Join(g.more[:min(len(g.more), shownOfGroup)], ", ")
		if rest := len(g.more) - shownOfGroup; rest > 0 {
			named += fmt.Sprintf(" and %d more (-o json lists all)", rest)
		}
		mark := signs[g.first.Action]
		line := fmt.Sprintf("%s %s %d more %s", mark.sign, mark.word, len(g.more), g.first.Object.Kind.Kind)
		fmt.Fprintf(&t.body, "%s with the changes of %s: %s\n", t.painter.Paint(mark.color, line), g.first.Object.At, named)
	}
}

// stop prints what is known so far, the risks first.
func (t *planText) stop() error {
	var risks strings.Builder
	for _, risk := range t.risks {
		fmt.Fprintln(&risks, t.painter.Paint(command.Red, "Risk:")+" "+command.EscapeControl(command.OneLine(risk)))
	}
	if len(t.risks) > 0 {
		fmt.Fprintln(&risks)
	}
	if _, err := fmt.Fprint(t.w, risks.String(), t.body.String()); err != nil {
		return fmt.Errorf("writing the plan: %w", err)
	}
	return nil
}

func (t *planText) end(counts map[string]int) error {
	if t.last != "" {
		fmt.Fprintln(&t.body)
	}
	t.endGroups()
	if err := t.stop(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(t.w, t.painter.Paint(command.Bold, "Plan:")+" "+countsText(counts))
	if err != nil {
		return fmt.Errorf("writing the plan: %w", err)
	}
	return nil
}

// countsText says how many objects are changed in which way.
func countsText(counts map[string]int) string {
	var parts []string
	for _, c := range []struct {
		action preview.Action
		text   string
	}{
		{preview.Create, "to create"}, {preview.Update, "to update"}, {preview.Repair, "to repair"},
		{preview.Recreate, "to recreate"}, {preview.Delete, "to delete"}, {preview.Release, "to release"},
		{findings.ActionFinalizer, "whose finalizer changes"}, {preview.Refuse, "that the API server would refuse"},
		{preview.Conflict, "in conflict with objects of others"}, {preview.Wait, "waiting"},
		{preview.Leave, "left alone"}, {findings.ActionLeftover, "left over"},
	} {
		n := counts[string(c.action)]
		if c.action == preview.Delete {
			n += counts[string(preview.Supersede)] // their lines say why
		}
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, c.text))
		}
	}
	if n := counts[string(preview.None)]; n > 0 || len(parts) == 0 {
		parts = append(parts, fmt.Sprintf("%d unchanged", n))
	}
	return strings.Join(parts, ", ")
}
