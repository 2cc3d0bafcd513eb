package desired

import (
	"errors"

	"github.com/corollary-dev/corollary/pkg/render"
	"github.com/corollary-dev/corollary/pkg/rules"
)

// tookTooLong reports whether a template, or an expression with a budget of its own, got no time to end.
func tookTooLong(err error) bool {
	return errors.Is(err, render.ErrTime) || errors.Is(err, rules.ErrTime)
}
