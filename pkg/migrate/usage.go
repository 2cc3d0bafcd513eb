package migrate

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"

	"github.com/corollary-dev/corollary/pkg/pages"
)

// Usage is what the managedFields of a kind's objects say of its versions. Its JSON is what corollary crd usage prints.
type Usage struct {
	CRD      string          `json:"crd"`
	Objects  int             `json:"objects"`
	Versions []*VersionUsage `json:"versions"`
	Managers []*ManagerUsage `json:"managers"`
	// Unknown is how many objects name no version of the kind in managedFields.
	Unknown int `json:"unknown"`
}

// VersionUsage is what they say of one version.
type VersionUsage struct {
	Version string `json:"version"`
	// Defined reports whether the definition has the version; the others are of it.
	Defined    bool `json:"defined"`
	Served     bool `json:"served"`
	Storage    bool `json:"storage"`
	Stored     bool `json:"stored"` // status.storedVersions names it: objects may be stored in it
	Deprecated bool `json:"deprecated"`
	Last       int  `json:"last"`
	Objects    int  `json:"objects"`
}

// ManagerUsage says of a field manager that it wrote objects in one version.
type ManagerUsage struct {
	Version   string      `json:"version"`
	Manager   string      `json:"manager"`
	Operation string      `json:"operation"`
	Objects   int         `json:"objects"`
	Last      metav1.Time `json:"last"`
	// Example is the object that it wrote last, NAMESPACE/NAME.
	Example string `json:"example"`
}

// UsageOf goes through the objects in the version that is stored, or another one if that is not served: it needs no
// conversion.
func UsageOf(
	ctx context.Context, client metadata.Interface, crd *apiextensionsv1.CustomResourceDefinition,
) (*Usage, error) {
	u := &Usage{CRD: crd.Name, Managers: []*ManagerUsage{}}
	read := ""
	for _, v := range crd.Spec.Versions {
		u.Versions = append(u.Versions, &VersionUsage{Version: v.Name, Defined: true, Served: v.Served, Storage: v.Storage,
			Stored: slices.Contains(crd.Status.StoredVersions, v.Name), Deprecated: v.Deprecated})
		if v.Served && (v.Storage || read == "") {
			read = v.Name
		}
	}
	if read == "" {
		return nil, fmt.Errorf("%s serves no version: set served: true in one of them", crd.Name)
	}
	objects := client.Resource(schema.GroupVersionResource{Group: crd.Spec.Group, Version: read,
		Resource: crd.Spec.Names.Plural})
	managers := map[[3]string]*ManagerUsage{}
	err := pages.Each(ctx, metav1.ListOptions{Limit: 500}, objects.List,
		func(page *metav1.PartialObjectMetadataList) error {
			for i := range page.Items {
				u.add(&page.Items[i], crd.Spec.Group, managers)
			}
			return nil
		})
	if err != nil {
		return nil, fmt.Errorf("listing the objects of %s: %w", crd.Name, err)
	}
	u.Managers = slices.AppendSeq(u.Managers, maps.Values(managers))
	slices.SortFunc(u.Managers, func(a, b *ManagerUsage) int {
		return cmp.Or(
			cmp.Compare(u.index(a.Version), u.index(b.Version)),
			cmp.Compare(a.Manager, b.Manager),
			cmp.Compare(a.Operation, b.Operation),
		)
	})
	return u, nil
}

// add counts one object.
func (u *Usage) add(o *metav1.PartialObjectMetadata, group string, managers map[[3]string]*ManagerUsage) {
	u.Objects++
	last := struct {
		version string
		at      time.Time
	}{}
	seen := map[any]bool{}
	for _, entry := range o.ManagedFields {
		gv, err := schema.ParseGroupVersion(entry.APIVersion)
		if err != nil || gv.Group != group {
			continue
		}
		at := metav1.Time{}
		if entry.Time != nil {
			at = *entry.Time
		}
		if last.version == "" || !at.Time.Before(last.at) {
			last.version, last.at = gv.Version, at.Time
		}
		if !seen[gv.Version] {
			u.Versions[u.index(gv.Version)].Objects++
		}
		key := [3]string{gv.Version, entry.Manager, string(entry.Operation)}
		m := managers[key]
		if m == nil {
			m = &ManagerUsage{Version: gv.Version, Manager: entry.Manager, Operation: string(entry.Operation)}
			managers[key] = m
		}
		if !seen[key] {
			m.Objects++
		}
		if m.Example == "" || m.Last.Before(&at) {
			m.Last, m.Example = at, strings.TrimPrefix(o.Namespace+"/"+o.Name, "/")
		}
		seen[gv.Version], seen[key] = true, true
	}
	if last.version == "" {
		u.Unknown++
		return
	}
	u.Versions[u.index(last.version)].Last++
}

// index is where a version is. One that the definition lacks comes after the others.
func (u *Usage) index(version string) int {
	i := slices.IndexFunc(u.Versions, func(v *VersionUsage) bool { return v.Version == version })
	if i < 0 {
		u.Versions = append(u.Versions, &VersionUsage{Version: version})
		return len(u.Versions) - 1
	}
	return i
}
