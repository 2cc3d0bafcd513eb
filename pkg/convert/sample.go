package convert

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Sample is an object of one version that can be converted to another one.
type Sample struct {
	Object map[string]any
	// To is the apiVersion to convert it to.
	To string
}

// sampleTries bounds how many objects are made for a sample: rules may leave few that are valid.
const sampleTries = 200

// Samples makes one object for each way between a spoke and the hub, to try an endpoint with. A way is missing where no valid object
// could be made.
func (c *Converter) Samples(ctx context.Context) []Sample {
	var list []Sample
	for _, name := range c.Versions() {
		for _, pair := range [][2]string{{name, c.hub.Name}, {c.hub.Name, name}} {
			p := &prover{Converter: c, from: c.version(pair[0]), via: c.version(pair[1]), generator: c.generator(1, c.version(pair[1]))}
			for range sampleTries {
				if obj, ok := p.make(ctx); ok {
					list = append(list, Sample{obj, schema.GroupVersion{Group: c.kind.Group, Version: pair[1]}.String()})
					break
				}
			}
		}
	}
	return list
}
