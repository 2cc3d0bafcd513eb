package convert

import (
	"context"
	"errors"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/rules"
)

// withoutValues is the text of an error of Convert in which no expression quotes a value of the object.
func withoutValues(err error) string {
	var failed *rules.EvalError
	if !errors.As(err, &failed) {
		return err.Error()
	}
	return strings.Replace(err.Error(), failed.Error(), failed.Redacted(), 1)
}

// Survives takes an object from its version to every other one and back, by way of the hub. It returns the first loss; nil where there is
// none. valid is false where the object itself is not valid in its version, as after a change of the schema: then a loss is only that it
// cannot be converted.
func (c *Converter) Survives(ctx context.Context, obj map[string]any) (loss *Counterexample, valid bool) {
	name, err := c.versionOf(obj)
	if err != nil {
		return &Counterexample{Object: obj, Problem: err.Error(), Shown: withoutValues(err)}, true
	}
	from := c.hub
	if s := c.spokes[name]; s != nil {
		from = s.version
	}
	obj = runtime.DeepCopyJSON(obj)
	from.Coerce(obj)
	if valid = len(from.Validate(ctx, obj)) == 0; valid && from != c.hub {
		if loss := c.pass(ctx, from, c.hub, obj); loss != nil {
			return loss, true
		}
	}
	if err := c.Convert(ctx, obj, c.hub.Name); err != nil {
		return &Counterexample{Object: obj, Problem: err.Error(), Shown: withoutValues(err)}, valid
	}
	c.hub.Coerce(obj)
	for _, name := range c.Versions() {
		if !valid {
			there := runtime.DeepCopyJSON(obj)
			if err := c.Convert(ctx, there, name); err != nil {
				return &Counterexample{Object: obj, Problem: err.Error(), Shown: withoutValues(err)}, false
			}
		} else if loss := c.pass(ctx, c.hub, c.spokes[name].version, obj); loss != nil {
			return loss, true
		}
	}
	return nil, valid
}

func (c *Converter) pass(ctx context.Context, from, via *kinds.Version, obj map[string]any) *Counterexample {
	p := &prover{Converter: c, from: from, via: via, kept: map[string]int{}, lost: map[string]int{}}
	return p.thereAndBack(ctx, obj)
}
