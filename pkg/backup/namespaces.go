package backup

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/backup/contents"
)

// missingNamespaces plans the Namespaces that are not in the cluster: those of the archive are restored as its other
// objects, the rest is created without labels and annotations.
func (p *pass) missingNamespaces(ctx context.Context) error {
	plan := p.plan
	plan.archived = map[string]types.UID{}
	archived, err := p.archivedNamespaces()
	if err != nil {
		return err
	}
	for _, f := range p.Archive.Manifest.Files {
		name := p.namespace(f.Namespace)
		if name == "" || slices.Contains(plan.Namespaces, name) || plan.archived[name] != "" {
			continue
		}
		_, err := p.Client.Resource(namespaces).Get(ctx, name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err) && archived[name] != "":
			plan.archived[name] = archived[name]
		case apierrors.IsNotFound(err):
			plan.createNamespace(name)
		case err != nil && !apierrors.IsForbidden(err):
			return fmt.Errorf("reading Namespace %s: %w", name, err)
		}
	}
	return nil
}

func (p *Plan) createNamespace(name string) {
	if p.Namespaces = append(p.Namespaces, name); len(p.Namespaces) == 1 {
		p.Notes = append(p.Notes,
			"namespaces are created without labels and annotations: add those that configs select them by")
	}
}

// archivedNamespaces are those of the archive, but for one whose owner is in itself and could not be restored before
// it.
func (p *pass) archivedNamespaces() (map[string]types.UID, error) {
	found := map[string]types.UID{}
	for _, t := range p.kinds {
		if t.GVR() != namespaces {
			continue
		}
		for _, f := range p.files(t) {
			if !p.Archive.Readable(f) {
				continue
			}
			err := p.each(t, f, func(u *unstructured.Unstructured) error {
				inside := func(o contents.Owner) bool { return p.namespace(o.Namespace) == u.GetName() }
				if !slices.ContainsFunc(contents.Owners(u, p.everyOperator()), inside) {
					found[u.GetName()] = u.GetUID()
				}
				return nil
			})
			if err != nil {
				return nil, err
			}
		}
	}
	return found, nil
}

// waitsForNamespace reports whether an object is in a Namespace of the archive that is neither restored nor refused
// yet.
func (p *pass) waitsForNamespace(t *target, u *unstructured.Unstructured) bool {
	uid, ok := p.plan.archived[p.namespace(u.GetNamespace())]
	return ok && t.Namespaced && p.now[uid] == "" && !p.refused[uid]
}
