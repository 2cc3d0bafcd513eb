package config

import (
	"strings"

	utilversion "k8s.io/apimachinery/pkg/util/version"
)

// Requires names the versions that a config needs.
type Requires struct {
	// Corollary is the oldest version of Corollary that runs the config: ">=VERSION".
	Corollary string `json:"corollary,omitempty" form:"atLeast"`
	// Kubernetes is the oldest version of the API server: ">=VERSION".
	Kubernetes string `json:"kubernetes,omitempty" form:"atLeast"`
	// CRDVersions are versions that the API server must serve, all of them, by the name of the CustomResourceDefinition
	// (PLURAL.GROUP).
	CRDVersions map[string][]string `json:"crdVersions,omitempty" form:"objectName"`
}

// AtLeast is the version of ">=VERSION", nil for an empty or wrong text.
func AtLeast(wanted string) *utilversion.Version {
	v, err := utilversion.ParseGeneric(strings.TrimSpace(strings.TrimPrefix(wanted, ">=")))
	if err != nil {
		return nil
	}
	return v
}
