//go:build controlplane

package memcluster_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/corollary-dev/corollary/internal/must"
)

// row is a sequence of requests to which both servers must respond in the same way.
type row struct {
	name, reason string
	steps        []step
}

// step is a request, or another operation on both servers: a line `METHOD[option, option] PATH BODY`. NS is the row's
// namespace, and ${2.metadata.uid} a field of the response to the second step. A GET with watch=true opens a watch.
//
// `EVENTS 2 3` reads three events from the watch of the second step, and `ENDS 2` reads from it until the server ends
// it, which the real one may do late, and compares only that it does. Other methods are operations of pkg/apply.
type step struct{ method, options, path, body string }

// What an option means, besides a media type of the body.
const (
	// otherMessage means that the messages of the responses differ; only the other fields are compared.
	otherMessage = "other message"
	// soon runs the garbage collector: the real server is polled until it responds like the one in memory.
	soon = "soon"
	// metadata asks for PartialObjectMetadata.
	metadata = "metadata"
	// table asks for a Table.
	table = "table"
)

func (s step) has(option string) bool { return strings.Contains(s.options, option) }

var (
	stepLine = regexp.MustCompile(`^(\w+)(?:\[(.*?)\])? (\S+) ?(.*)$`)
	words    = regexp.MustCompile(`\$\w+`)
	long     = regexp.MustCompile(`\$long\{(\d+)\}`)
)

// conformance reads the rows in testdata/conformance: sections whose first line is the reason, and each other a step.
// Each line of words.txt is a word in them and what it means.
func conformance(t *testing.T) (rows []row) {
	t.Helper()
	text := must.Get(os.ReadFile("testdata/conformance/words.txt")).In(t)
	meaning := map[string]string{}
	for line := range strings.Lines(string(text)) {
		word, means, _ := strings.Cut(strings.TrimSpace(line), " ")
		meaning[word] = means
	}
	files, err := filepath.Glob("testdata/conformance/*.txtar")
	if err != nil || len(files) < 9 {
		t.Fatalf("found %q, %v", files, err)
	}
	for _, path := range files {
		archive := must.Get(txtar.ParseFile(path)).In(t)
		for _, section := range archive.Files {
			r := row{name: section.Name}
			for line := range strings.Lines(string(section.Data)) {
				if r.reason == "" {
					r.reason = strings.TrimSpace(line)
					continue
				}
				line = long.ReplaceAllStringFunc(strings.TrimSpace(line), func(found string) string {
					n, _ := strconv.Atoi(long.FindStringSubmatch(found)[1])
					return strings.Repeat("x", n)
				})
				line = words.ReplaceAllStringFunc(line, func(word string) string {
					if meaning[word] == "" {
						t.Fatalf("%s: %s is not in words.txt", path, word)
					}
					return meaning[word]
				})
				parts := stepLine.FindStringSubmatch(line)
				if parts == nil {
					t.Fatalf("%s: %q is not a step", path, line)
				}
				r.steps = append(r.steps, step{parts[1], parts[2], parts[3], parts[4]})
			}
			rows = append(rows, r)
		}
	}
	return rows
}
