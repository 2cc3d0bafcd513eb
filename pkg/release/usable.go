package release

import (
	"slices"
	"strings"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/config/load"
)

// Usable separates the errors that loading found: those that keep a finalizer from being found, and those that do not
// matter, since a broken rule or template must hold nobody up.
func Usable(files []*load.File, problems config.Errors) (failed []error, ignored config.Errors) {
	for _, e := range problems {
		if hidesFinalizer(files, e) {
			failed = append(failed, e)
		} else {
			ignored = append(ignored, e)
		}
	}
	return failed, ignored
}

// hidesFinalizer reports whether an error leaves it open what to release where.
func hidesFinalizer(files []*load.File, e *config.Error) bool {
	at := slices.IndexFunc(files, func(f *load.File) bool { return f.Path == e.File })
	switch {
	case e.Path == "":
		return true
	case e.Path == "watch" || strings.HasPrefix(e.Path, "watch.apiVersion") || strings.HasPrefix(e.Path, "watch.kind") ||
		strings.HasPrefix(e.Path, "watch.namespaces"):
		return true
	case e.Path == "conventions" || strings.HasPrefix(e.Path, "conventions.finalizer"):
		// That two operators share one is reported elsewhere: it can be taken off all the same.
		return at < 0 || files[at].Conventions.Finalizer == ""
	}
	return false
}
