package document

import (
	"github.com/corollary-dev/corollary/pkg/config"
)

// Problems collects what is wrong with the values of a document. It says nothing about a value that was already
// reported as unreadable or of the wrong type.
type Problems struct {
	*Document
	Errs config.Errors
}

// Add adds a problem at a path, unless one is reported there already: the first says most.
func (p *Problems) Add(path, fix, format string, args ...any) {
	if !p.Reported(path) {
		p.Errs = append(p.Errs, p.Errorf(path, fix, format, args...))
	}
}
