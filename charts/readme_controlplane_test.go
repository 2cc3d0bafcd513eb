//go:build controlplane

package charts

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/corollary-dev/corollary/internal/must"
)

// TestReadme renders what the chart's README says to type, and the values that it shows.
func TestReadme(t *testing.T) {
	t.Parallel()
	readme := text(t, "corollary/README.md")
	dir := unpack(t, map[string]string{
		"webapp.yaml":               text(t, "../examples/configs/webapp/operator.yaml"),
		"conventions.yaml":          "apiVersion: corollary.dev/v1alpha1\nkind: Conventions\nconventions: {}\n",
		"templates/deployment.yaml": "metadata: {}\n",
	})
	root := must.Get(filepath.Abs("..")).In(t)
	for _, place := range []string{"charts", "examples"} {
		must.Do(t, os.Symlink(filepath.Join(root, place), filepath.Join(dir, place)))
	}
	commands := 0
	for _, block := range fenced(readme, "sh") {
		for line := range strings.Lines(strings.ReplaceAll(block, "\\\n", " ")) {
			words := arguments(line)
			if len(words) < 2 || words[0] != "helm" || words[1] == "uninstall" {
				continue
			}
			commands++
			words[1] = "template" // which needs no release to be there
			words = slices.DeleteFunc(words, func(word string) bool { return word == "--reset-then-reuse-values" })
			if strings.Contains(line, " upgrade ") {
				words = append(words, "--set=image.repository=registry.example.com/corollary") // which was there
			}
			if _, stderr, err := helmIn(t, dir, words[1:]...); err != nil {
				t.Errorf("%s: %v\n%s", line, err, stderr)
			}
		}
	}
	for _, block := range fenced(readme, "yaml") {
		commands++
		render(t, "--values="+write(t, "values.yaml", block))
	}
	if commands < 4 {
		t.Errorf("the README has %d commands and values only", commands)
	}
}

// fenced returns the blocks of a language.
func fenced(markdown, language string) []string {
	var blocks []string
	for _, match := range regexp.MustCompile("(?ms)^```"+language+"\n(.*?)^```").FindAllStringSubmatch(markdown, -1) {
		blocks = append(blocks, match[1])
	}
	return blocks
}

// arguments splits a line of shell as far as the README goes: blanks, and single quotes around whole words.
func arguments(line string) []string {
	var words []string
	for word := range strings.FieldsSeq(line) {
		words = append(words, strings.Trim(word, "'"))
	}
	return words
}
