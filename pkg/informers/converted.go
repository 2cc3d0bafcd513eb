package informers

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"github.com/corollary-dev/corollary/pkg/operator/compile"
)

// Unconverted says why objects of a resource must not be read or written now, since nothing converts them to the
// version in which the config has them; empty if they may.
type Unconverted func(ctx context.Context, r schema.GroupResource) (why string, err error)

// Any returns an error if a kind of a config must not be read or written now.
func (u Unconverted) Any(ctx context.Context, p *compile.Pipeline) error {
	if u == nil {
		return nil
	}
	for _, k := range p.Kinds() {
		if !k.IsCustom() || k.Missing != nil {
			continue
		}
		if why, err := u(ctx, k.GVR.GroupResource()); err != nil || why != "" {
			return cmp.Or(err, errors.New(why))
		}
	}
	return nil
}

// ErrUnconverted is a list or watch that was not begun, since objects would lack fields.
var ErrUnconverted = errors.New("not converted")

// converted reads objects while they are converted. If the conversion is taken out of a definition, the API server ends
// the watches of the kind, so that it is noticed at once.
type converted struct {
	dynamic.ResourceInterface
	check func(context.Context) error
}

// List implements dynamic.ResourceInterface.
func (c converted) List(ctx context.Context, o metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	if err := c.check(ctx); err != nil {
		return nil, err
	}
	return c.ResourceInterface.List(ctx, o)
}

// Watch implements dynamic.ResourceInterface.
func (c converted) Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	if err := c.check(ctx); err != nil {
		return nil, err
	}
	return c.ResourceInterface.Watch(ctx, o)
}

// resource is where the objects of a watch are read.
func (w *Factory) resource(client dynamic.Interface, key Key) dynamic.ResourceInterface {
	objects := client.Resource(key.GVR).Namespace(key.Namespace)
	if w.Unconverted == nil {
		return objects
	}
	return converted{objects, func(ctx context.Context) error {
		why, err := w.Unconverted(ctx, key.GVR.GroupResource())
		if err == nil && why != "" {
			err = fmt.Errorf("%w: %s", ErrUnconverted, why)
		}
		return err
	}}
}
