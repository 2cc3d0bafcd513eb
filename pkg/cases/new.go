package cases

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/yamltext"
)

// NewText returns the text of a case without expectations: --update adds them. config and crds are paths relative to
// its file, upstream is the custom resource as YAML, and reason is a sentence that says what the case tests.
func NewText(reason, config string, crds []string, upstream []byte) []byte {
	var out strings.Builder
	for line := range strings.Lines(strings.TrimSpace(reason) + "\n") {
		out.WriteString("# " + line)
	}
	fmt.Fprintf(&out, "%skind: %s\nconfig: %s\n", Header, Kind, quotedPath(config))
	crds = slices.Clone(crds)
	for i, path := range crds {
		crds[i] = quotedPath(path)
	}
	if len(crds) > 0 {
		fmt.Fprintf(&out, "crds: [%s]\n", strings.Join(crds, ", "))
	}
	out.WriteString("\nupstream:\n" + yamltext.Indent(string(upstream), "  ") + "\nexpect: {}\n")
	return []byte(out.String())
}

// plainPath matches paths that are plain strings in YAML.
var plainPath = regexp.MustCompile(`^[A-Za-z./_][A-Za-z0-9./_-]*$`)

func quotedPath(path string) string {
	if plainPath.MatchString(path) {
		return path
	}
	return strconv.Quote(path)
}

// Header is the first line of a case file.
const Header = "apiVersion: " + config.APIVersion + "\n"
