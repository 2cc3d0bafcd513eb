package cli

import (
	"fmt"

	"github.com/corollary-dev/corollary/pkg/offline"
)

// readInputs reads the files of --inputs. An object of a namespaced kind without a namespace is in the one given; that a
// cluster-scoped one gets one too is fixed by entering it without, as well.
func readInputs(paths []string, streams IO, namespace string) (offline.Given, []error) {
	if namespace == "" {
		namespace = "default"
	}
	list, errs := readUpstreams(paths, streams.In)
	g := offline.Given{}
	for _, u := range list {
		for _, ns := range []string{namespace, ""} {
			if err := g.Add(u.object, ns); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", u.where, err))
			}
		}
	}
	return g, errs
}
