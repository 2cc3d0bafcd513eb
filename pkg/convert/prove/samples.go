package prove

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/pkg/convert"
)

// Sample is an object of one version that can be converted to another one.
type Sample struct {
	Object map[string]any
	// To is the apiVersion to convert it to.
	To string
}

// sampleTries bounds how many objects are made for a sample: rules may leave few that are valid.
const sampleTries = 200

// Samples makes one object for each way between a spoke and the hub, to try an endpoint with. A way is missing where no
// valid object could be made.
func Samples(ctx context.Context, c *convert.Converter) []Sample {
	var list []Sample
	for _, name := range c.Versions() {
		for _, pair := range [][2]string{{name, c.Hub.Name}, {c.Hub.Name, name}} {
			from, maker := c.Version(pair[0]), makerFor(c, 1, c.Version(pair[1]))
			for range sampleTries {
				if obj, ok := maker.Make(ctx, from); ok {
					list = append(list, Sample{obj, schema.GroupVersion{Group: c.Kind.Group, Version: pair[1]}.String()})
					break
				}
			}
		}
	}
	return list
}
