package compile

import (
	"slices"
	"strings"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/rules"
)

// compilation carries one compilation from step to step.
type compilation struct {
	file *load.File
	p    *Pipeline
	env  *rules.Env
	errs config.Errors
	// wrongHelpers says that the errors of the helpers are among errs.
	wrongHelpers bool
	// before is the object of deletion.before; nil if the config has none.
	before *downstream
}

// fail records an error at a path of the config file.
func (c *compilation) fail(path, fix, format string, args ...any) {
	c.errs = append(c.errs, c.file.Errorf(path, fix, format, args...))
}

// failOnce is fail for what every downstream would report again.
func (c *compilation) failOnce(path, fix, format string, args ...any) {
	c.addOnce(c.file.Errorf(path, fix, format, args...))
}

func (c *compilation) addOnce(e *config.Error) {
	for _, have := range c.errs {
		if *have == *e {
			return
		}
	}
	c.errs = append(c.errs, e)
}

// reported reports whether something was said already of the field that is named in a problem.
func (c *compilation) reported(e config.Error) bool {
	same := func(have config.Error) bool {
		return have.File == e.File && have.Line == e.Line && have.Path == e.Path && (have.Problem == e.Problem || strings.HasPrefix(have.Problem, "metadata"))
	}
	return slices.ContainsFunc(c.p.Warnings, same) || slices.ContainsFunc(c.p.Refusals, same) ||
		slices.ContainsFunc(c.errs, func(have *config.Error) bool { return same(*have) })
}

func (c *compilation) warn(e config.Error) {
	if !slices.Contains(c.p.Warnings, e) {
		c.p.Warnings = append(c.p.Warnings, e)
	}
}
