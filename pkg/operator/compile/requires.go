package compile

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/kinds"
)

// Requirement is something that a config requires of the API server.
type Requirement struct {
	// Name is kubernetes, or the name of a CustomResourceDefinition; Wanted is the version.
	Name, Wanted string
	// Unmet says what is there instead; nil where the requirement is met, or cannot be checked without an API server.
	Unmet *config.Error
}

// Requirements checks what a config requires of the API server. The error is a request that failed.
func Requirements(f *load.File, o Options) ([]Requirement, error) {
	r := f.Requires
	if r == nil {
		return nil, nil
	}
	var list []Requirement
	if wanted := config.AtLeast(r.Kubernetes); wanted != nil {
		met := Requirement{Name: "kubernetes", Wanted: r.Kubernetes}
		if o.Version != nil && !o.Version.AtLeast(wanted) {
			met.Unmet = f.Errorf("requires.kubernetes", "upgrade the cluster, or use the config for its version",
				"the API server is %s, and the config requires %s", o.Version, r.Kubernetes)
		}
		list = append(list, met)
	}
	source, ok := o.Kinds.(kinds.VersionSource)
	if !ok {
		return list, nil
	}
	for _, name := range slices.Sorted(maps.Keys(r.CRDVersions)) {
		served, known, err := source.ServedVersions(context.Background(), schema.ParseGroupResource(name))
		if err != nil {
			return nil, err
		}
		for i, version := range r.CRDVersions[name] {
			wanted := Requirement{Name: name, Wanted: version}
			if known && !slices.Contains(served, version) {
				wanted.Unmet = f.Errorf(fmt.Sprintf("requires.crdVersions['%s'][%d]", name, i),
					"apply the CustomResourceDefinition that this config is for, or use the config for the one that is there",
					"%s is not served in %s, %s", name, version, servedText(served))
			}
			list = append(list, wanted)
		}
	}
	return list, nil
}

func servedText(versions []string) string {
	if len(versions) == 0 {
		return "nor in another version"
	}
	return "only in " + strings.Join(versions, ", ")
}

// checkRequired refuses a config whose requirements are not met. What deletions depend on is compiled all the same.
func checkRequired(c *compilation, o Options) error {
	if o.Deletions {
		return nil
	}
	list, err := Requirements(c.file, o)
	for _, r := range list {
		if r.Unmet != nil {
			c.errs = append(c.errs, r.Unmet)
		}
	}
	return err
}
