package described

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/crddiff"
	"github.com/corollary-dev/corollary/pkg/generate"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/kinds/discovered"
	"github.com/corollary-dev/corollary/pkg/operator/compile"
)

// establishedWithin is how long an API server may take to serve a new kind.
const establishedWithin = time.Minute

// installer applies the definitions of the kinds that configs describe, with the rights of whoever started the command.
type installer struct {
	cfg    *rest.Config
	client dynamic.Interface
	log    logr.Logger
}

// Install applies the definitions of all kinds that the configs describe, and waits until they are served. One that is
// there and differs is only changed if it was applied by the same field manager, and if no object loses anything.
func Install(
	ctx context.Context, cfg *rest.Config, files []*load.File, options compile.Options, log logr.Logger,
) error {
	options.Kinds = compile.DescribedInstead(files, options.Kinds)
	list, _, err := compile.All(files, nil, options) // whoever runs them reports what is wrong with the configs
	if err != nil {
		return err
	}
	definitions, err := generate.Definitions(list)
	if err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return fmt.Errorf("preparing the client: %w", err)
	}
	i := &installer{cfg: cfg, client: client, log: log}
	var errs []error
	for _, d := range definitions {
		for _, note := range d.Notes {
			log.Info("the CustomResourceDefinition does not contain all rules", "name", d.Object.GetName(), "note", note)
		}
		if err := i.install(ctx, d); err != nil {
			errs = append(errs, fmt.Errorf("installing CustomResourceDefinition %s: %w", d.Object.GetName(), err))
		}
	}
	return errors.Join(errs...)
}

func (i *installer) install(ctx context.Context, d *generate.Definition) error {
	t := apply.Target{GVR: kinds.DefinitionResource, Name: d.Object.GetName(), Yields: true}
	client := apply.New(i.client, d.File.Conventions.FieldManager)
	_, err := client.Create(ctx, t, d.Object.Object)
	switch {
	case err == nil:
		i.log.Info("created a CustomResourceDefinition", "name", t.Name)
	case errors.Is(err, apply.ErrExists):
		if err := i.update(ctx, client, t, d); err != nil {
			return err
		}
	default:
		return err
	}
	return i.await(ctx, client, t, d)
}

// update changes a definition that is there, if it may.
func (i *installer) update(ctx context.Context, client *apply.Client, t apply.Target, d *generate.Definition) error {
	live, err := client.Get(ctx, t)
	if err != nil {
		return err
	}
	have := &apiextensionsv1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, have); err != nil {
		return err
	}
	described, err := readDefinition(d)
	if err != nil {
		return err
	}
	lines, worst, err := changes(have, described)
	if err != nil || len(lines) == 0 {
		return err
	}
	const apply = "apply it yourself if that is intended: corollary generate crd -c CONFIG | kubectl apply " +
		"--server-side " +
		"--force-conflicts -f -"
	differs := "it differs from watch.schema in " + d.File.Path + ":\n  " + strings.Join(lines, "\n  ")
	if !appliedBy(live, d.File.Conventions.FieldManager) {
		return fmt.Errorf("%s\nit was not applied by this operator, so it is not changed: %s", differs, apply)
	}
	if worst > crddiff.Compatible {
		switch used, err := i.isUsed(ctx, have); {
		case err != nil:
			return err
		case used:
			return fmt.Errorf("%s\nthere are objects of the kind, so it is not changed: %s", differs, apply)
		}
	}
	if _, err := client.ApplyAt(ctx, t, live.GetUID(), live.GetResourceVersion(), d.Object.Object); err != nil {
		return err
	}
	i.log.Info("changed a CustomResourceDefinition", "name", t.Name, "changes", lines)
	return nil
}

// appliedBy reports whether a field manager has applied an object.
func appliedBy(u *unstructured.Unstructured, manager string) bool {
	return slices.ContainsFunc(u.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager == manager && e.Operation == metav1.ManagedFieldsOperationApply && e.Subresource == ""
	})
}

// isUsed reports whether there is any object of a kind.
func (i *installer) isUsed(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) (bool, error) {
	for _, v := range crd.Spec.Versions {
		if !v.Served {
			continue
		}
		gvr := apiextensionsv1.SchemeGroupVersion.WithResource(crd.Spec.Names.Plural)
		gvr.Group, gvr.Version = crd.Spec.Group, v.Name
		list, err := i.client.Resource(gvr).List(ctx, metav1.ListOptions{Limit: 1})
		if err != nil {
			return false, fmt.Errorf("looking for objects of the kind: %w", err)
		}
		return len(list.Items) > 0, nil
	}
	return true, nil
}

// await waits until objects of a kind can be written, and the API server publishes its schema.
func (i *installer) await(ctx context.Context, client *apply.Client, t apply.Target, d *generate.Definition) error {
	var why string
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, establishedWithin, true,
		func(ctx context.Context) (bool, error) {
			live, err := client.Get(ctx, t)
			if err != nil {
				return false, err
			}
			var established bool
			if established, why = kinds.Established(live); !established {
				return false, nil
			}
			cluster, err := discovered.New(i.cfg) // which remembers what it has seen
			if err != nil {
				return false, err
			}
			kind, err := cluster.Kind(d.Kind)
			return err == nil && kind.Schema != nil, nil
		})
	if err != nil {
		return fmt.Errorf("waiting until it is served%s: %w", why, err)
	}
	return nil
}
