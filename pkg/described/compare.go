// Package described compares the definitions of kinds that configs describe by watch.schema with those that are there,
// and installs them. It also finds what configs read that a change of definitions takes away.
package described

import (
	"fmt"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/crddiff"
	"github.com/corollary-dev/corollary/pkg/generate"
	"github.com/corollary-dev/corollary/pkg/operator/compile"
)

// Compare warns of each kind that configs describe whose definition differs from that which is there, and, with
// required, of each that is not there. find returns nil for none.
func Compare(list []compile.Compiled, where string, required bool,
	find func(name string) (*apiextensionsv1.CustomResourceDefinition, error)) (config.Errors, error) {
	definitions, err := generate.Definitions(list)
	if err != nil {
		return nil, err
	}
	var found config.Errors
	for _, d := range definitions {
		described, err := readDefinition(d)
		if err != nil {
			return nil, err
		}
		warn := func(fix, format string, args ...any) {
			found = append(found, d.File.Errorf("watch.schema", fix, format, args...))
		}
		there, err := find(described.Name)
		switch {
		case apierrors.IsForbidden(err):
			warn("", "it is not known whether the CustomResourceDefinition in %s differs: %v", where, err)
			continue
		case err != nil:
			return nil, err
		case there == nil && required:
			warn(
				"apply what corollary generate crd prints, or use corollary run --install-crds",
				"%s has no CustomResourceDefinition %s",
				where,
				described.Name,
			)
			continue
		case there == nil:
			continue
		}
		lines, _, err := changes(there, described)
		if err != nil {
			return nil, err
		}
		if len(lines) > 0 {
			warn(
				"",
				"the CustomResourceDefinition %s in %s differs. What corollary generate crd prints would change:\n    %s",
				described.Name,
				where,
				strings.Join(lines, "\n    "),
			)
		}
	}
	return found, nil
}

// readDefinition is a definition as the API server has types for it.
func readDefinition(d *generate.Definition) (*apiextensionsv1.CustomResourceDefinition, error) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(d.Object.Object, crd); err != nil {
		return nil, fmt.Errorf("reading the CustomResourceDefinition of %s: %w", d.Kind.Kind, err)
	}
	return crd, nil
}

// changes says what it would change to replace a definition by another one; nil for nothing. worst is the level of the
// changes.
func changes(from, to *apiextensionsv1.CustomResourceDefinition) (lines []string, worst crddiff.Level, err error) {
	to = to.DeepCopy()
	to.Spec.Conversion = from.Spec.Conversion
	parts := crddiff.Parts(from, to)
	if len(parts) == 0 {
		return nil, crddiff.Compatible, nil
	}
	found, err := crddiff.Diff([]*apiextensionsv1.CustomResourceDefinition{from},
		[]*apiextensionsv1.CustomResourceDefinition{to})
	if err != nil {
		return nil, crddiff.Breaking, err
	}
	for _, c := range found {
		lines = append(lines, fmt.Sprintf("%s: %s: %s", c.Level, c.Path, c.Reason))
	}
	if len(found) == 0 {
		lines = append(lines, "compatible: "+strings.Join(parts, ", "))
	}
	return lines, crddiff.Worst(found, false), nil
}
