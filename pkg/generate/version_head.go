package generate

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// VersionHead is the comment above what is pasted into a kind's CustomResourceDefinition: whose it is, and where it
// goes.
func VersionHead(kind schema.GroupVersionKind, operators []string) string {
	return fmt.Sprintf("# %s of %s, for operator %s:\n# to be merged into the entry of spec.versions whose name is %s.\n",
		kind.Kind, kind.GroupVersion(), strings.Join(operators, ", "), kind.Version)
}
