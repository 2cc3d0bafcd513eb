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

// WarnOfDropping warns of versions through which configs write, and that drop what objects have in another version that
// is served: where no webhook converts, the API server prunes an object to the version of each write, be it of the
// status alone.
func WarnOfDropping(
	list []compile.Compiled, conversions []*load.ConversionFile, find Find,
) (found config.Errors, err error) {
	for _, c := range list {
		written := map[string]kinds.Kind{"watch.apiVersion": c.Pipeline.Upstream}
		for _, d := range c.Pipeline.Downstreams {
			written[fmt.Sprintf("downstreams[%d].apiVersion", d.Index)] = d.Kind
		}
		for _, at := range slices.Sorted(maps.Keys(written)) {
			lost, err := DroppedBy(written[at], conversions, find)
			if err != nil {
				return nil, err
			}
			if lost != "" {
				found = append(found, c.File.Errorf(at, "use the other version, serve a conversion, or give this one the fields",
					"each write through version %s, also of a status, drops what the object has in another version, and no webhook "+
						"converts: %s",
					written[at].GVK.Version, lost))
			}
		}
	}
	return found, nil
}

// DroppedBy names the fields that writes through a kind's version drop.
func DroppedBy(kind kinds.Kind, conversions []*load.ConversionFile, find Find) (string, error) {
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
