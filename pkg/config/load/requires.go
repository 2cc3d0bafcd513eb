package load

import (
	utilversion "k8s.io/apimachinery/pkg/util/version"

	"github.com/corollary-dev/corollary/pkg/config"
)

// requiresProgram holds the config against the version of this program. A program that was built without one satisfies
// every config.
func (f *File) requiresProgram(program string) config.Errors {
	if f.Requires == nil {
		return nil
	}
	wanted := config.AtLeast(f.Requires.Corollary)
	have, err := utilversion.ParseSemantic(program)
	known := err == nil && have.Major()+have.Minor()+have.Patch() > 0
	if wanted == nil || !known || have.AtLeast(wanted) {
		return nil
	}
	return config.Errors{f.Errorf("requires.corollary", "upgrade Corollary, or use the config for its version",
		"this is Corollary %s, and the config requires %s", have, f.Requires.Corollary)}
}
