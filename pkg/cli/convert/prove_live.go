package convert

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/corollary-dev/corollary/pkg/cli/command"
	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/conversions"
	"github.com/corollary-dev/corollary/pkg/convert/prove"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/pages"
)

const (
	// lossesShown is how many objects are named that do not survive.
	lossesShown = 20
	// objectsHeld is how many objects are listed at once.
	objectsHeld = 100
)

// runLive takes the objects of the cluster there and back.
func (o *proveOptions) runLive(ctx context.Context, cmd *cobra.Command) error {
	for _, flag := range []string{"crds", "seed", "objects", "output"} {
		if cmd.Flags().Changed(flag) {
			return command.Usagef("--live tries what the cluster has: leave out --%s", flag)
		}
	}
	cfg, err := o.connection.REST()
	if err != nil {
		return err
	}
	source, err := conversions.NewSource(cfg)
	if err != nil {
		return err
	}
	list, err := o.compileAgainst(func(f *load.ConversionFile) (*apiextensionsv1.CustomResourceDefinition, error) {
		return source.Definition(ctx, f)
	})
	if err != nil {
		return err
	}
	lossy := 0
	for _, c := range list {
		lost, err := o.tryLive(ctx, source.Client, c)
		if err != nil {
			return err
		}
		lossy += lost
	}
	if lossy > 0 {
		return fmt.Errorf("%s would lose data or cannot be converted", command.Count(lossy, "object"))
	}
	return nil
}

// tryLive tries the objects of one kind, in the version that they are stored in. It returns how many do not survive.
// One object that the webhook cannot convert fails the list in every version but its own: then they are read in the
// versions in which they may be stored.
func (o *proveOptions) tryLive(
	ctx context.Context, client dynamic.Interface, c *conversions.Conversion,
) (lost int, err error) {
	version := kinds.StoredVersion(c.CRD)
	others := slices.DeleteFunc(slices.Clone(c.CRD.Status.StoredVersions), func(v string) bool { return v == version })
	fmt.Fprintf(o.streams.Out, "%s (%s)\n", c.File.Name, c.File.For)
	if len(others) > 0 {
		fmt.Fprintf(o.streams.Out,
			"  note: objects may be stored as %s, too, and are read as the API server gives them in %s\n",
			strings.Join(others, ", "), version)
	}
	lost, err = o.tryVersion(ctx, client, c, version)
	for i := 0; err != nil && ctx.Err() == nil && i < len(others); i++ {
		fmt.Fprintf(o.streams.Out, "  %v\n  so they are read in %s:\n", err, others[i])
		again, failed := o.tryVersion(ctx, client, c, others[i])
		if failed == nil {
			return again, nil
		}
		lost = max(lost, again)
	}
	return lost, err
}

// tryVersion tries the objects of one kind as the API server gives them in a version.
func (o *proveOptions) tryVersion(ctx context.Context, client dynamic.Interface, c *conversions.Conversion,
	version string) (lost int, err error) {
	tried, invalid := 0, 0
	resource := schema.GroupVersionResource{Group: c.CRD.Spec.Group, Version: version, Resource: c.CRD.Spec.Names.Plural}
	err = pages.Each(
		ctx,
		metav1.ListOptions{Limit: objectsHeld},
		client.Resource(resource).List,
		func(page *unstructured.UnstructuredList) error {
			for i := range page.Items {
				u := &page.Items[i]
				loss, valid := prove.Survives(ctx, c.Converter, u.Object)
				if tried++; !valid {
					invalid++
				}
				if loss == nil {
					continue
				}
				if lost++; lost <= lossesShown {
					fmt.Fprintf(o.streams.Out, "  %s/%s: %s\n", u.GetNamespace(), u.GetName(), loss.Shown)
				}
			}
			return ctx.Err()
		},
	)
	if err != nil {
		return lost, fmt.Errorf("listing %s in version %s: %w", resource.GroupResource(), version, err)
	}
	if more := lost - lossesShown; more > 0 {
		fmt.Fprintf(o.streams.Out, "  and %s more\n", command.Count(more, "object"))
	}
	result := "nothing is lost"
	if lost > 0 {
		result = fmt.Sprintf("%d LOST", lost)
	}
	fmt.Fprintf(o.streams.Out, "  %s in %s: %s", command.Count(tried, "object"), version, result)
	if invalid > 0 {
		fmt.Fprintf(o.streams.Out, "; %d are not valid by the schema of now, and were only converted", invalid)
	}
	fmt.Fprintln(o.streams.Out)
	return lost, nil
}
