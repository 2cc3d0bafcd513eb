package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/crddiff"
	"github.com/corollary-dev/corollary/pkg/generate"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/pipeline"
)

// readDefinition is a definition as the API server has types for it.
func readDefinition(d *generate.Definition) (*apiextensionsv1.CustomResourceDefinition, error) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(d.Object.Object, crd); err != nil {
		return nil, fmt.Errorf("reading the CustomResourceDefinition of %s: %w", d.Kind.Kind, err)
	}
	return crd, nil
}

// definitionChanges says what it would change to replace a definition by another one; nil for nothing. worst is the level of the
// changes.
func definitionChanges(from, to *apiextensionsv1.CustomResourceDefinition) (lines []string, worst crddiff.Level, err error) {
	to = to.DeepCopy()
	to.Spec.Conversion = from.Spec.Conversion
	parts := crddiff.Parts(from, to)
	if len(parts) == 0 {
		return nil, crddiff.Compatible, nil
	}
	changes, err := crddiff.Diff([]*apiextensionsv1.CustomResourceDefinition{from}, []*apiextensionsv1.CustomResourceDefinition{to})
	if err != nil {
		return nil, crddiff.Breaking, err
	}
	for _, c := range changes {
		lines = append(lines, fmt.Sprintf("%s: %s: %s", c.Level, c.Path, c.Reason))
	}
	if len(changes) == 0 {
		lines = append(lines, "compatible: "+strings.Join(parts, ", "))
	}
	return lines, crddiff.Worst(changes, false), nil
}

// findDefinition finds a definition by its name; nil for none.
type findDefinition func(name string) (*apiextensionsv1.CustomResourceDefinition, error)

// compareDescribed warns of each kind that configs describe whose definition differs from that which is there, and, with required, of each
// that is not there.
func compareDescribed(list []pipeline.Compiled, where string, required bool, find findDefinition) (config.Errors, error) {
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
		lines, _, err := definitionChanges(there, described)
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

// warnOfDropping warns of versions through which configs write, and that drop what objects have in another version that is served: where no
// webhook converts, the API server prunes an object to the version of each write, be it of the status alone.
func warnOfDropping(list []pipeline.Compiled, conversions []*load.ConversionFile, find findDefinition) (found config.Errors, err error) {
	for _, c := range list {
		written := map[string]kinds.Kind{"watch.apiVersion": c.Pipeline.Upstream}
		for _, d := range c.Pipeline.Downstreams {
			written[fmt.Sprintf("downstreams[%d].apiVersion", d.Index)] = d.Kind
		}
		for _, at := range slices.Sorted(maps.Keys(written)) {
			lost, err := droppedBy(written[at], conversions, find)
			if err != nil {
				return nil, err
			}
			if lost != "" {
				found = append(found, c.File.Errorf(at, "use the other version, serve a conversion, or give this one the fields",
					"each write through version %s, also of a status, drops what the object has in another version, and no webhook converts: %s",
					written[at].GVK.Version, lost))
			}
		}
	}
	return found, nil
}

// droppedBy names the fields that writes through a kind's version drop.
func droppedBy(kind kinds.Kind, conversions []*load.ConversionFile, find findDefinition) (string, error) {
	isConverted := func(f *load.ConversionFile) bool {
		return f.For.Group == kind.GVK.Group && f.For.Kind == kind.GVK.Kind
	}
	if !kind.IsCustom() || kind.GVR.Resource == "" || slices.ContainsFunc(conversions, isConverted) {
		return "", nil
	}
	crd, err := find(kind.GVR.GroupResource().String())
	if apierrors.IsForbidden(err) || crd == nil {
		return "", nil // they cannot be read, or there is none
	}
	if s := crd.Spec.Conversion; err != nil || s != nil && s.Strategy != apiextensionsv1.NoneConverter {
		return "", err
	}
	var lost []string
	for _, v := range crd.Spec.Versions {
		if !v.Served || v.Name == kind.GVK.Version {
			continue
		}
		dropped, err := crddiff.Dropped(crd, v.Name, kind.GVK.Version)
		if err != nil {
			return "", err
		}
		for _, change := range dropped {
			lost = append(lost, v.Name+" "+change.Path)
		}
	}
	return strings.Join(lost, ", "), nil
}

// definitionsOf finds definitions in the API server.
func definitionsOf(ctx context.Context, client dynamic.Interface) findDefinition {
	return func(name string) (*apiextensionsv1.CustomResourceDefinition, error) {
		crd, err := kinds.ReadDefinition(ctx, client, name)
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return crd, err
	}
}

// definitionsIn finds definitions in files.
func definitionsIn(files []string) (findDefinition, error) {
	list, err := kinds.CRDs(files...)
	return func(name string) (*apiextensionsv1.CustomResourceDefinition, error) {
		i := slices.IndexFunc(list, func(d *apiextensionsv1.CustomResourceDefinition) bool { return d.Name == name })
		if i < 0 {
			return nil, nil
		}
		return list[i], nil
	}, err
}
