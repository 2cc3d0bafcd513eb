package docs_test

import (
	"encoding/xml"
	"errors"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/corollary-dev/corollary/pkg/operator"
)

// TestPictures: each is whole, needs no other file, and says in words what it shows.
func TestPictures(t *testing.T) {
	names, err := filepath.Glob("pictures/*.svg")
	if err != nil || len(names) == 0 {
		t.Fatalf("there are no pictures: %v", err)
	}
	for _, name := range names {
		text := read(t, name)
		elements := map[string]int{}
		for decoder := xml.NewDecoder(strings.NewReader(text)); ; {
			token, err := decoder.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if start, ok := token.(xml.StartElement); ok {
				elements[start.Name.Local]++
			}
		}
		if elements["title"] != 1 || elements["desc"] != 1 {
			t.Errorf("%s has no title or no desc", name)
		}
		if elements["script"] > 0 || elements["image"] > 0 || strings.Contains(text, "@import") || strings.Contains(text, "url(http") {
			t.Errorf("%s runs or loads something", name)
		}
		if strings.Contains(text, "var(") {
			t.Errorf("%s takes its colors from variables, which not every viewer of SVG knows: there it is black", name)
		}
	}
}

// TestLifeShowsStates: the words in the picture are those that a status has.
func TestLifeShowsStates(t *testing.T) {
	shown := regexp.MustCompile(`class="mono"[^>]*>([A-Za-z]+)<`).FindAllStringSubmatch(read(t, "pictures/life.svg"), -1)
	if len(shown) < 10 {
		t.Errorf("the picture shows %d states only", len(shown))
	}
	for _, m := range shown {
		if !slices.Contains(operator.States(), operator.State(m[1])) {
			t.Errorf("the picture shows %s, which is no state", m[1])
		}
	}
}
