package command

import (
	"fmt"

	"github.com/corollary-dev/corollary/pkg/offline"
)

// ReadInputs reads the files of --inputs. An object of a namespaced kind without a namespace is in the one given; that a
// cluster-scoped one gets one too is fixed by entering it without, as well.
func ReadInputs(paths []string, streams IO, namespace string) (offline.Given, []error) {
	if namespace == "" {
		namespace = "default"
	}
	list, errs := ReadUpstreams(paths, streams.In)
	g := offline.Given{}
	for _, u := range list {
		for _, ns := range []string{namespace, ""} {
			if err := g.Add(u.Object, ns); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", u.Where, err))
			}
		}
	}
	return g, errs
}
