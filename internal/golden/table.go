package golden

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Table runs each entry of a text file, relative to the test's directory, as a subtest. An entry is a line "# " with the reason, lines of
// input, and the result, indented by four spaces; an empty line ends it. With -update it writes the results. run gets the input without a
// line break at the end, and returns what is not empty.
func Table(t *testing.T, path string, run func(t *testing.T, input string) string) {
	t.Helper()
	const indent = "\n    "
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	entries := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n\n")
	for i, entry := range entries {
		title, rest, _ := strings.Cut(entry, "\n")
		reason, ok := strings.CutPrefix(title, "# ")
		if !ok {
			t.Fatalf("%s: an entry gives no reason: %s", path, entry)
		}
		input, want, _ := strings.Cut(rest, indent)
		t.Run(reason, func(t *testing.T) {
			got := strings.ReplaceAll(run(t, input), "\n", indent)
			entries[i] = title + "\n" + input + indent + got
			if got == "" {
				t.Error("the result is empty")
			} else if diff := cmp.Diff(want, got); diff != "" && !*update {
				t.Errorf("%s: the result differs (- file, + now); make golden writes it anew:\n%s", input, diff)
			}
		})
	}
	if *update && !t.Failed() {
		write(t, path, []byte(strings.Join(entries, "\n\n")+"\n"))
	}
}
