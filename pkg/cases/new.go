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

// New is the text of a case that expects nothing yet: --update fills it in. config and crds are paths relative to the
// file that it is written to, upstream is the custom resource as YAML, and reason says in a sentence what the case holds.
func New(reason, config string, crds []string, upstream []byte) []byte {
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

// plainPath matches the paths that YAML takes for text wherever they stand.
var plainPath = regexp.MustCompile(`^[A-Za-z./_][A-Za-z0-9./_-]*$`)

func quotedPath(path string) string {
	if plainPath.MatchString(path) {
		return path
	}
	return strconv.Quote(path)
}

// Header is the line that a case file begins with.
const Header = "apiVersion: " + config.APIVersion + "\n"
