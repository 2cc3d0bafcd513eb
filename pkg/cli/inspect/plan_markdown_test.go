package inspect

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/pkg/docdiff"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/survey/findings"
)

func markdownItem(action string, i int, value string) findings.Item {
	at := operator.Ref{Namespace: "team", Name: fmt.Sprintf("app-%d", i)}
	return findings.Item{Action: action, Before: map[string]any{}, About: findings.About{Operator: "apps", Downstream: "config",
		Upstream: findings.Object{Kind: schema.GroupVersionKind{Kind: "App"}, At: at},
		Object:   findings.Object{Kind: schema.GroupVersionKind{Kind: "ConfigMap"}, At: at}, Reason: value},
		Diffs: []docdiff.Field{{Path: fieldpath.New("data", "text"), Before: "old", After: value}}}
}

// TestMarkdownFitsIntoAComment: however much changes, and in however many ways, the comment has room for what deletes,
// says how much more there is, and the whole plan is never held.
func TestMarkdownFitsIntoAComment(t *testing.T) {
	var out strings.Builder
	m := &planMarkdown{w: &out}
	for i := range 20_000 {
		if err := m.item(markdownItem("update", i, fmt.Sprint(i, strings.Repeat("x", 200)))); err != nil {
			t.Fatal(err)
		}
	}
	held := 0
	for _, s := range m.sections {
		for _, g := range s.order {
			held += len(g.diff) + len(g.why) + len(strings.Join(g.objects, ""))
		}
	}
	if held > 2*commentSize {
		t.Errorf("%d bytes are held", held)
	}
	last := markdownItem("delete", 20_000, "no item gives it")
	last.Risk = "its values are lost"
	if err := m.item(last); err != nil {
		t.Fatal(err)
	}
	if err := m.end(map[string]int{"update": 20_000, "delete": 1}); err != nil {
		t.Fatal(err)
	}
	text := out.String()
	risk, deletion, update := strings.Index(text, "its values are lost"), strings.Index(text, "- delete ConfigMap team/app-20000"), strings.Index(text, "~ update")
	if len(text) > 65_536 || risk < 0 || deletion < risk || update < deletion {
		t.Errorf("%d bytes; the risk is at %d, the deletion at %d, the first update at %d", len(text), risk, deletion, update)
	}
	if !strings.Contains(text, "more changes have no room here") {
		t.Error("what has no room is not counted")
	}
}

// TestMarkdownGroups: one entry has what changes alike for one reason; what is refused for another one is another entry.
func TestMarkdownGroups(t *testing.T) {
	var out strings.Builder
	m := &planMarkdown{w: &out}
	for i, message := range []string{"quota", "quota", "no right"} {
		item := markdownItem("refuse", i, "")
		item.Diffs, item.Failure = nil, &operator.Failure{Reason: "Rejected", Message: message}
		if err := m.item(item); err != nil {
			t.Fatal(err)
		}
	}
	created := markdownItem("create", 3, "team/app-3 does not exist")
	created.Before, created.Note = nil, "not certain"
	if err := errors.Join(m.item(created), m.end(map[string]int{"refuse": 3, "create": 1})); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"! refused 2 × ConfigMap", "` Rejected: quota `", "! refused ConfigMap team/app-2", "` Rejected: no right `",
		"` it does not exist (not certain) `"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it lacks %s:\n%s", want, out.String())
		}
	}
}

// TestMarkdownObeysNothing: what a custom resource says is code, whatever it is.
func TestMarkdownObeysNothing(t *testing.T) {
	const hostile = "`` ``` </details> @team #1 <img src=x> [a](http://b)"
	var out strings.Builder
	m := &planMarkdown{w: &out}
	item := markdownItem("update", 1, hostile+"\n````\n# head\n````")
	item.Risk, item.Downstream = hostile, "<b>"
	if err := m.item(item); err != nil {
		t.Fatal(err)
	}
	m.note("%s", hostile)
	if err := m.end(map[string]int{"update": 1}); err != nil {
		t.Fatal(err)
	}
	fence := ""
	for line := range strings.Lines(out.String()) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case fence != "":
			if strings.TrimSpace(line) == fence {
				fence = ""
			}
		case strings.HasPrefix(line, "```") && strings.HasSuffix(line, "diff"):
			fence = strings.TrimSuffix(line, "diff")
		case strings.Contains(line, "@team"):
			ticks, inner, _ := strings.Cut(strings.TrimLeft(line, "-> "), " ")
			inner, isCode := strings.CutSuffix(inner, " "+ticks)
			if !isCode || strings.Trim(ticks, "`") != "" || longestTicks(inner) >= len(ticks) {
				t.Errorf("not code: %s", line)
			}
		case strings.Contains(line, "<b>"):
			t.Errorf("not escaped: %s", line)
		}
	}
	if fence != "" || strings.Count(out.String(), "\n</details>") != 1 {
		t.Errorf("a block does not end where it should:\n%s", out.String())
	}
}
