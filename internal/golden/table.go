package golden

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Entry is one entry of a table.
type Entry struct{ Reason, Input, Want string }

const indent = "\n    "

// Entries reads a table, relative to the test's directory. An entry is a line "# " with the reason, lines of input, and
// the result, indented by four spaces; an empty line ends it.
func Entries(t *testing.T, path string) (list []Entry) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for text := range strings.SplitSeq(strings.TrimSuffix(string(data), "\n"), "\n\n") {
		title, rest, _ := strings.Cut(text, "\n")
		reason, ok := strings.CutPrefix(title, "# ")
		if !ok {
			t.Fatalf("%s: an entry gives no reason: %s", path, text)
		}
		input, want, _ := strings.Cut(rest, indent)
		list = append(list, Entry{reason, input, strings.ReplaceAll(want, indent, "\n")})
	}
	return list
}

// Table runs each entry of a table as a subtest. With -update it writes the results. run gets the input without a line
// break at the end, and returns what is not empty.
func Table(t *testing.T, path string, run func(t *testing.T, input string) string) {
	t.Helper()
	var out []string
	for _, e := range Entries(t, path) {
		t.Run(e.Reason, func(t *testing.T) {
			got := run(t, e.Input)
			out = append(out, "# "+e.Reason+"\n"+e.Input+indent+strings.ReplaceAll(got, "\n", indent))
			if got == "" {
				t.Error("the result is empty")
			} else if diff := cmp.Diff(e.Want, got); diff != "" && !*update {
				t.Errorf("%s: the result differs (- file, + now); make golden writes it anew:\n%s", e.Input, diff)
			}
		})
	}
	if *update && !t.Failed() {
		write(t, path, []byte(strings.Join(out, "\n\n")+"\n"))
	}
}
