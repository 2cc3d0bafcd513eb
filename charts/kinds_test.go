package charts

import (
	"fmt"
	"strings"
	"testing"

	"github.com/corollary-dev/corollary/internal/golden"
	"github.com/corollary-dev/corollary/pkg/kinds"
)

// TestKinds writes what the chart's templates know of built-in kinds.
func TestKinds(t *testing.T) {
	var b strings.Builder
	b.WriteString("# The kinds of Kubernetes itself: the resource, whether it is in namespaces, and whether it has a status subresource.\n" +
		"# Made by a test from what the command knows; `make golden` writes it anew.\n")
	told := map[string]string{}
	for _, k := range kinds.Builtins() {
		name := k.GVK.GroupKind().String()
		line := fmt.Sprintf("%s: {resource: %s, namespaced: %v, status: %v}\n", name, k.GVR.Resource, k.Namespaced, k.HasStatus)
		if other, ok := told[name]; ok && other != line {
			t.Errorf("%s is not the same in all versions:\n%s%s", name, other, line)
		} else if !ok {
			told[name] = line
			b.WriteString(line)
		}
	}
	golden.File(t, "corollary/files/kinds.yaml", []byte(b.String()))
}
