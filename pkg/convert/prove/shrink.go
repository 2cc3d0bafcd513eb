package prove

import (
	"context"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/corollary-dev/corollary/pkg/convert/generator"
	"github.com/corollary-dev/corollary/pkg/convert/places"
	"github.com/corollary-dev/corollary/pkg/kinds"
)

// maxShrinks bounds how many smaller objects are tried.
const maxShrinks = 5000

// shrink makes a counterexample smaller as long as try finds that it is one: without fields and items, with simpler
// values.
func (p *prover) shrink(
	ctx context.Context, obj map[string]any, found *Counterexample,
	try func(context.Context, map[string]any) *Counterexample,
) *Counterexample {
	tries := 0
	for smaller := true; smaller; {
		smaller = false
		for candidate := range simpler(obj) {
			if tries++; tries > maxShrinks || ctx.Err() != nil {
				return found
			}
			next, ok := candidate.(map[string]any)
			if !ok {
				continue
			}
			next = runtime.DeepCopyJSON(next)
			generator.Store(p.from, next)
			if places.Equal(next, obj) || len(p.from.Validate(ctx, next)) > 0 {
				continue
			}
			if again := try(ctx, next); again != nil {
				obj, found, smaller = next, again, true
				break
			}
		}
	}
	return found
}

// simpler are values that have one thing less than value. They share what they have with it.
func simpler(value any) func(func(any) bool) {
	return func(yield func(any) bool) {
		switch value := value.(type) {
		case map[string]any:
			simplerMap(value, yield)
		case []any:
			for i := range value {
				if !yield(slices.Delete(slices.Clone(value), i, i+1)) {
					return
				}
			}
			for i := range value {
				for item := range simpler(value[i]) {
					with := slices.Clone(value)
					with[i] = item
					if !yield(with) {
						return
					}
				}
			}
		case string:
			runes := []rune(value)
			for i := range runes {
				if !yield(string(slices.Delete(slices.Clone(runes), i, i+1))) {
					return
				}
			}
		case int64:
			if value != 0 && yield(int64(0)) && value != 1 {
				yield(int64(1))
			}
		}
	}
}

func simplerMap(value map[string]any, yield func(any) bool) {
	keys := slices.DeleteFunc(slices.Sorted(maps.Keys(value)), kinds.IsHead)
	for _, key := range keys {
		without := maps.Clone(value)
		delete(without, key)
		if !yield(without) {
			return
		}
	}
	for _, key := range keys {
		for item := range simpler(value[key]) {
			with := maps.Clone(value)
			with[key] = item
			if !yield(with) {
				return
			}
		}
	}
}
