package conversions

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/dynamic"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/crddiff"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/operator/compile"
)

// Find finds a definition by its name; nil for none.
type Find func(name string) (*apiextensionsv1.CustomResourceDefinition, error)

// WarnOfDropping warns of versions through which configs write, where no webhook converts: the API server prunes an
// object to the version of each write, be it of the status alone, and to the stored version.
func WarnOfDropping(
	list []compile.Compiled, conversions []*load.ConversionFile, find Find,
) (found config.Errors, err error) {
	for _, c := range list {
		written := map[string]kinds.Kind{"watch.apiVersion": c.Pipeline.Upstream}
		for _, d := range c.Pipeline.Downstreams {
			written[fmt.Sprintf("downstreams[%d].apiVersion", d.Index)] = d.Kind
		}
		for _, at := range slices.Sorted(maps.Keys(written)) {
			kind := written[at]
			crd, err := unconverted(kind, conversions, find)
			switch {
			case err != nil:
				return nil, err
			case crd == nil:
				continue
			}
			lost, err := dropped(crd, kind.GVK.Version)
			if err != nil {
				return nil, err
			}
			if lost != "" {
				found = append(found, c.File.Errorf(at, "use the other version, serve a conversion, or give this one the fields",
					"each write through version %s, also of a status, drops what the object has in another version, and no webhook "+
						"converts: %s",
					kind.GVK.Version, lost))
			}
			stored, below := kinds.StoredVersion(crd), ""
			if at == "watch.apiVersion" {
				below = ".status" // nothing else of it is written
			}
			if lost, err = droppedBetween(crd, kind.GVK.Version, stored, below); err != nil {
				return nil, err
			}
			if lost != "" {
				found = append(found, c.File.Errorf(at, "use the stored version, serve a conversion, or give that one the fields",
					"objects are stored in version %s, which drops what is written through another one, and no webhook converts: %s",
					stored, lost))
			}
		}
	}
	return found, nil
}

// DroppedBy names the fields that writes through a kind's version drop.
func DroppedBy(kind kinds.Kind, conversions []*load.ConversionFile, find Find) (string, error) {
	crd, err := unconverted(kind, conversions, find)
	if crd == nil || err != nil {
		return "", err
	}
	return dropped(crd, kind.GVK.Version)
}

// unconverted is the definition of a kind whose versions nothing converts; nil for another one.
func unconverted(
	kind kinds.Kind, conversions []*load.ConversionFile, find Find,
) (*apiextensionsv1.CustomResourceDefinition, error) {
	isConverted := func(f *load.ConversionFile) bool {
		return f.For.Group == kind.GVK.Group && f.For.Kind == kind.GVK.Kind
	}
	if !kind.IsCustom() || kind.GVR.Resource == "" || slices.ContainsFunc(conversions, isConverted) {
		return nil, nil
	}
	crd, err := find(kind.GVR.GroupResource().String())
	switch {
	case apierrors.IsForbidden(err):
		return nil, nil // it cannot be read
	case err != nil || crd == nil:
		return nil, err
	}
	if s := crd.Spec.Conversion; s != nil && s.Strategy != apiextensionsv1.NoneConverter {
		return nil, nil
	}
	return crd, nil
}

// dropped names what the other versions that are served have, and one lacks.
func dropped(crd *apiextensionsv1.CustomResourceDefinition, version string) (string, error) {
	var lost []string
	for _, v := range crd.Spec.Versions {
		if !v.Served {
			continue
		}
		text, err := droppedBetween(crd, v.Name, version, "")
		if err != nil {
			return "", err
		}
		if text != "" {
			lost = append(lost, text)
		}
	}
	return strings.Join(lost, ", "), nil
}

// droppedBetween names what one version has below a path and another one lacks; empty for nothing.
func droppedBetween(crd *apiextensionsv1.CustomResourceDefinition, from, to, below string) (string, error) {
	if from == to {
		return "", nil
	}
	list, err := crddiff.Dropped(crd, from, to)
	var lost []string
	for _, change := range list {
		if strings.HasPrefix(change.Path, below) {
			lost = append(lost, from+" "+change.Path)
		}
	}
	return strings.Join(lost, ", "), err
}

// DefinitionsOf finds definitions in the API server.
func DefinitionsOf(ctx context.Context, client dynamic.Interface) Find {
	return func(name string) (*apiextensionsv1.CustomResourceDefinition, error) {
		crd, err := kinds.ReadDefinition(ctx, client, name)
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return crd, err
	}
}

// DefinitionsIn finds definitions in files.
func DefinitionsIn(files []string) (Find, error) {
	list, err := kinds.CRDs(files...)
	return func(name string) (*apiextensionsv1.CustomResourceDefinition, error) {
		i := slices.IndexFunc(list, func(d *apiextensionsv1.CustomResourceDefinition) bool { return d.Name == name })
		if i < 0 {
			return nil, nil
		}
		return list[i], nil
	}, err
}
