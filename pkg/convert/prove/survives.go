package prove

import (
	"context"
	"errors"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/corollary-dev/corollary/pkg/convert"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/rules"
)

// refusedBy is an object that cannot be converted.
func refusedBy(err error, obj map[string]any) *Counterexample {
	return &Counterexample{Object: obj, Problem: err.Error(), Shown: withoutValues(err)}
}

// withoutValues is the text of an error of Convert in which no expression quotes a value of the object.
func withoutValues(err error) string {
	var failed *rules.EvalError
	if !errors.As(err, &failed) {
		return err.Error()
	}
	return strings.Replace(err.Error(), failed.Error(), failed.Redacted(), 1)
}

// Survives takes an object from its version to every other one and back, by way of the hub. It returns the first loss;
// nil where there is none. valid is false where the object itself is not valid in its version, as after a change of the
// schema: then a loss is only that it cannot be converted.
func Survives(ctx context.Context, c *convert.Converter, obj map[string]any) (loss *Counterexample, valid bool) {
	name, err := c.VersionOf(obj)
	if err != nil {
		return refusedBy(err, obj), true
	}
	from := c.Hub
	if s := c.Spokes[name]; s != nil {
		from = s.Version
	}
	obj = runtime.DeepCopyJSON(obj)
	from.Coerce(obj)
	if valid = len(from.Validate(ctx, obj)) == 0; valid && from != c.Hub {
		if loss := lossOn(ctx, c, from, c.Hub, obj); loss != nil {
			return loss, true
		}
	}
	if err := c.Convert(ctx, obj, c.Hub.Name); err != nil {
		return refusedBy(err, obj), valid
	}
	c.Hub.Coerce(obj)
	for _, name := range c.Versions() {
		if !valid {
			there := runtime.DeepCopyJSON(obj)
			if err := c.Convert(ctx, there, name); err != nil {
				return refusedBy(err, obj), false
			}
		} else if loss := lossOn(ctx, c, c.Hub, c.Spokes[name].Version, obj); loss != nil {
			return loss, true
		}
	}
	return nil, valid
}

// lossOn takes an object there and back; nil where it survives.
func lossOn(ctx context.Context, c *convert.Converter, from, via *kinds.Version, obj map[string]any) *Counterexample {
	p := &prover{Converter: c, from: from, via: via, kept: map[string]int{}, lost: map[string]int{}}
	return p.thereAndBack(ctx, obj)
}
