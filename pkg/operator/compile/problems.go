package compile

import (
	"slices"
	"strings"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/config/load"
)

// problems collects what is wrong with a config, and what its author should know.
type problems struct {
	file               *load.File
	errs               config.Errors
	warnings, refusals []config.Error
	// wrongHelpers: the errors of the helpers are among errs.
	wrongHelpers bool
}

// fail records an error at a path of the config file.
func (p *problems) fail(path, fix, format string, args ...any) {
	p.errs = append(p.errs, p.file.Errorf(path, fix, format, args...))
}

// failOnce is fail for what every downstream would report again.
func (p *problems) failOnce(path, fix, format string, args ...any) {
	p.addOnce(p.file.Errorf(path, fix, format, args...))
}

func (p *problems) addOnce(e *config.Error) {
	for _, have := range p.errs {
		if *have == *e {
			return
		}
	}
	p.errs = append(p.errs, e)
}

// reported reports whether something was said already of the field that is named in a problem.
func (p *problems) reported(e config.Error) bool {
	same := func(have config.Error) bool {
		return have.File == e.File && have.Line == e.Line && have.Path == e.Path && (have.Problem == e.Problem || strings.HasPrefix(have.Problem, "metadata"))
	}
	return slices.ContainsFunc(p.warnings, same) || slices.ContainsFunc(p.refusals, same) ||
		slices.ContainsFunc(p.errs, func(have *config.Error) bool { return same(*have) })
}

func (p *problems) warn(e config.Error) {
	if !slices.Contains(p.warnings, e) {
		p.warnings = append(p.warnings, e)
	}
}
