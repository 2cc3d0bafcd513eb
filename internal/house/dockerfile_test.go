package house

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// TestDockerfileHasTheGoOfTheModule: an image with an older Go could not build it, and one with a newer Go is not
// tested.
func TestDockerfileHasTheGoOfTheModule(t *testing.T) {
	found := map[string]string{}
	for file, pattern := range map[string]string{
		"go.mod":     `(?m)^go (\d+\.\d+)`,
		"Dockerfile": `(?m)^ARG BUILDER=\S+/golang:(\d+\.\d+)`,
	} {
		data, err := os.ReadFile(filepath.Join("../..", file))
		if err != nil {
			t.Fatal(err)
		}
		match := regexp.MustCompile(pattern).FindSubmatch(data)
		if match == nil {
			t.Fatalf("%s names no version of Go", file)
		}
		found[file] = string(match[1])
	}
	if found["go.mod"] != found["Dockerfile"] {
		t.Errorf("the versions of Go are %v", found)
	}
}
