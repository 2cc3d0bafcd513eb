package cli_test

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// TestJUnit reads a report with a decoder that knows nothing of the types that it was written from.
func TestJUnit(t *testing.T) {
	operator := read(t, "../../testdata/widgets/operator.yaml")
	t.Chdir(t.TempDir())
	widget := "apiVersion: corollary.dev/v1alpha1\nkind: Case\nconfig: ../operator.yaml\n" +
		"upstream: {apiVersion: tools.example.com/v1, kind: Widget, metadata: {name: one}, spec: {color: \"]]> <a> & \\u0007\"}}\n"
	for name, text := range map[string]string{
		"cases/a-holds.yaml":   widget + "expect: {downstreams: {config: {state: Create}}}\n",
		"cases/b-differs.yaml": widget + "expect: {downstreams: {config: {fields: {.data.color: blue}}}}\n",
		"cases/c-mistake.yaml": widget + "expct: {}\n",
		"other/d-holds.yaml":   widget + "expect: {finalizer: None}\n",
		"operator.yaml":        operator,
	} {
		write(t, name, text)
	}
	code, out := run(t, "test", "cases", "other", "--junit", "report.xml", "--color", "always")
	if code != 1 || !strings.Contains(out, "4 cases: 2 ok, 2 failed") {
		t.Fatalf("exit code %d\n%s", code, out)
	}
	got := elements(t, read(t, "report.xml"))
	want := []string{
		"testsuites tests=4 failures=1 errors=1",
		"testsuite name=cases tests=3 failures=1 errors=1",
		"testcase name=a-holds classname=cases file=cases/a-holds.yaml",
		"testcase name=b-differs classname=cases file=cases/b-differs.yaml",
		"failure message=cases/b-differs.yaml:5: expect.downstreams.config (- expected, + came out)",
		`+    .data.color: "]]> <a> & \a"`,
		"testcase name=c-mistake classname=cases file=cases/c-mistake.yaml",
		"error message=cases/c-mistake.yaml:5: expct: unknown key: did you mean expect?",
		"testsuite name=other tests=1 failures=0 errors=0",
		"testcase name=d-holds classname=other file=other/d-holds.yaml",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// elements lists what a report says: each element with its attributes but for the times, and added lines of texts.
func elements(t *testing.T, report string) []string {
	t.Helper()
	var list []string
	var text strings.Builder // a CDATA section may end within a line
	decoder := xml.NewDecoder(strings.NewReader(report))
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return list
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, report)
		}
		switch token := token.(type) {
		case xml.StartElement:
			line := token.Name.Local
			for _, a := range token.Attr {
				if a.Name.Local != "time" {
					line += " " + a.Name.Local + "=" + a.Value
				}
			}
			list = append(list, line)
		case xml.CharData:
			text.Write(token)
		case xml.EndElement:
			for line := range strings.Lines(text.String()) {
				if line = strings.TrimSpace(line); strings.HasPrefix(line, "+") {
					list = append(list, line)
				}
			}
			text.Reset()
		}
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	return string(must(os.ReadFile(name))(t))
}

func write(t *testing.T, name, text string) {
	t.Helper()
	ok(t, os.MkdirAll(filepath.Dir(name), 0o755))
	ok(t, os.WriteFile(name, []byte(text), 0o644))
}
