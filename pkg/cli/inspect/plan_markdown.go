package inspect

import (
	"fmt"
	"html"
	"io"
	"strings"

	"github.com/corollary-dev/corollary/pkg/cli/command"
	"github.com/corollary-dev/corollary/pkg/reconcile/preview"
	"github.com/corollary-dev/corollary/pkg/survey/findings"
)

// planMarkdown prints a plan that fits into a comment on a pull request: what is lost first, then what is deleted, and
// so on; what changes in the same way is one folded entry. All that comes from the cluster is code, in which Git hosts
// obey nothing and notify nobody.
type planMarkdown struct {
	w            io.Writer
	risks, notes []string
	// sections are the groups of each action; what has no room any more is only counted.
	sections map[string]*planSection
	noDiff   bool
}

// planSection is what is done in one way.
type planSection struct {
	groups map[string]*planGroup
	order  []*planGroup
	size   int
	more   int
}

// planGroup is objects of one downstream that change alike, for one reason.
type planGroup struct {
	sign, operator, downstream, kind string
	why, diff                        string
	objects                          []string
	count                            int
}

const (
	// commentSize is how many bytes a comment may have: GitHub takes 65,536 characters.
	commentSize = 65_000
	// shownInGroup is how many objects of a group are named.
	shownInGroup = 20
	// longestDiff and longestText are how long differences, and a text on one line, may be.
	longestDiff = 8_000
	longestText = 1_000
)

// byDanger are the actions, what may lose most first.
var byDanger = []preview.Action{preview.Delete, preview.Recreate, preview.Release, preview.Refuse, preview.Conflict,
	findings.ActionLeftover, preview.Update, preview.Repair, preview.Create, findings.ActionFinalizer,
	preview.Wait, preview.Leave}

func (m *planMarkdown) note(format string, args ...any) {
	m.notes = append(m.notes, fmt.Sprintf(format, args...))
}

func (m *planMarkdown) item(item findings.Item) error {
	if item.Risk != "" && len(m.risks) <= shownInGroup {
		m.risks = append(m.risks, cut(fmt.Sprintf("%s %s: %s", item.Upstream, item.Object, item.Risk), longestText))
	}
	action := item.Action
	if action == string(preview.Supersede) {
		action = string(preview.Delete)
	}
	s := m.sections[action]
	if s == nil {
		s = &planSection{groups: map[string]*planGroup{}}
		if m.sections == nil {
			m.sections = map[string]*planSection{}
		}
		m.sections[action] = s
	}
	s.add(item, m.diffOf(item))
	return nil
}

func (m *planMarkdown) diffOf(item findings.Item) string {
	if m.noDiff || item.Before == nil {
		return ""
	}
	var text strings.Builder
	printDiffs(&text, command.Painter{}, "", item.Shown())
	diff := text.String()
	if len(diff) > longestDiff {
		diff = cut(diff, longestDiff) + "\n… (-o json has all of it)\n"
	}
	diff = strings.ReplaceAll("\n"+diff, "\n~ ", "\n! ") // the sign of a change in the highlighting of diffs
	return diff[1:]
}

func (s *planSection) add(item findings.Item, diff string) {
	object, why := item.Object.String(), whyOf(item)
	if item.Object.At.Name == "" {
		object = "of " + item.Upstream.String()
	} else if rest, ok := strings.CutPrefix(why, item.Object.At.String()+" "); ok {
		why = "it " + rest // else no two reasons are the same
	}
	if item.Note != "" {
		why += " (" + item.Note + ")"
	}
	why = cut(why, longestText)
	key := strings.Join([]string{item.Operator, item.Downstream, item.Object.Kind.Kind, why, diff}, "\x00")
	g := s.groups[key]
	if g == nil {
		if s.size > commentSize {
			s.more++
			return
		}
		mark := signs[item.Action]
		g = &planGroup{sign: mark.sign + " " + mark.word, operator: item.Operator, downstream: item.Downstream,
			kind: item.Object.Kind.Kind, why: why, diff: diff}
		s.groups[key], s.order = g, append(s.order, g)
		s.size += len(why) + len(diff)
	}
	if g.count++; len(g.objects) < shownInGroup {
		g.objects = append(g.objects, object)
		s.size += len(object)
	}
}

// stop prints nothing, so that nobody takes a part of a plan for all of it.
func (*planMarkdown) stop() error { return nil }

func (m *planMarkdown) end(counts map[string]int) error {
	var out strings.Builder
	fmt.Fprintf(&out, "### Plan: %s\n\n", countsText(counts))
	for i, risk := range m.risks {
		if i == 0 {
			out.WriteString("**Risk:** values or objects are lost.\n\n")
		}
		if i == shownInGroup {
			out.WriteString("- and more (`-o json` lists all)\n")
			break
		}
		out.WriteString("- " + codeSpan(risk) + "\n")
	}
	for _, note := range m.notes {
		out.WriteString("\n> " + codeSpan(note) + "\n")
	}
	hidden := 0
	for _, action := range byDanger {
		s := m.sections[string(action)]
		if s == nil {
			continue
		}
		hidden += s.more
		for _, g := range s.order {
			if text := g.text(); out.Len()+len(text) < commentSize {
				out.WriteString(text)
			} else {
				hidden += g.count
			}
		}
	}
	if hidden > 0 {
		fmt.Fprintf(&out, "\n%d more changes have no room here: `corollary plan` prints all.\n", hidden)
	}
	if _, err := io.WriteString(m.w, out.String()); err != nil {
		return fmt.Errorf("writing the plan: %w", err)
	}
	return nil
}

// text is a group as a folded entry.
func (g *planGroup) text() string {
	var out strings.Builder
	head := g.sign + " " + g.objects[0]
	if g.count > 1 {
		head = fmt.Sprintf("%s %d × %s", g.sign, g.count, g.kind)
	}
	if g.downstream != "" {
		head += ", downstream " + g.downstream
	}
	fmt.Fprintf(&out, "\n<details><summary><code>%s</code> (operator <code>%s</code>)</summary>\n\n",
		html.EscapeString(command.EscapeControl(command.OneLine(head))), html.EscapeString(g.operator))
	if g.count > 1 {
		named := strings.Join(g.objects, ", ")
		if rest := g.count - len(g.objects); rest > 0 {
			named += fmt.Sprintf(" and %d more", rest)
		}
		out.WriteString(codeSpan(named) + "\n\n")
	}
	if g.why != "" {
		out.WriteString(codeSpan(g.why) + "\n\n")
	}
	if g.diff != "" {
		fence := strings.Repeat("`", max(3, longestTicks(g.diff)+1))
		fmt.Fprintf(&out, "%sdiff\n%s%s\n\n", fence, g.diff, fence)
	}
	out.WriteString("</details>\n")
	return out.String()
}

// cut is the beginning of a text that is too long.
func cut(text string, length int) string {
	if len(text) <= length {
		return text
	}
	return strings.ToValidUTF8(text[:length], "") + "…"
}

// codeSpan is a text on one line as code, in which Markdown knows no other sign.
func codeSpan(text string) string {
	text = command.EscapeControl(command.OneLine(text))
	ticks := strings.Repeat("`", longestTicks(text)+1)
	return ticks + " " + text + " " + ticks
}

// longestTicks is how many backquotes follow each other at most.
func longestTicks(text string) int {
	longest, run := 0, 0
	for _, r := range text {
		if run++; r != '`' {
			run = 0
		}
		longest = max(longest, run)
	}
	return longest
}
