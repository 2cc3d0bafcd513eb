package program

import (
	"testing"

	"github.com/corollary-dev/corollary/pkg/render/parsing"
)

func TestRunsKeepNothing(t *testing.T) {
	text, delimiters := "a: {{ _put0 .secret }}", parsing.Delimiters{}.WithDefaults()
	tmpl := New(text, "", delimiters)
	var err error
	if tmpl.Trees, _, err = parsing.Trees(text, "", delimiters); err != nil {
		t.Fatal(err)
	}
	tmpl.Sites, tmpl.Calls = []Site{{}}, []Call{{Name: "_put0", Function: FnPut}}
	r := tmpl.newRun()
	d := Data{Upstream: map[string]any{"secret": "s"}}
	r.start(d)
	if err := r.execute(d, false); err != nil {
		t.Fatal(err)
	}
	if r.Records[0].Value != "s" {
		t.Error("the hole is not recorded")
	}
	r.release()
	if r.data.Upstream != nil || r.Records[:1][0].Value != nil {
		t.Error("a pooled run keeps the upstream")
	}
}
