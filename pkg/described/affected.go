package described

import (
	"errors"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/crddiff"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/operator/compile"
)

// Affected lists what configs read that a change of definitions takes away: check finds it by the new ones, and not by
// the old ones.
func Affected(files []*load.File, older, newer []*apiextensionsv1.CustomResourceDefinition) ([]crddiff.Change, error) {
	before, err := kinds.OfflineFrom(older, "OLD")
	if err != nil {
		return nil, err
	}
	after, err := kinds.OfflineFrom(newer, "NEW")
	if err != nil {
		return nil, err
	}
	var found []crddiff.Change
	known := map[string]bool{}
	problems, err := problemsOf(files, before)
	for _, p := range problems {
		known[p.Error()] = true
	}
	problems, also := problemsOf(files, after)
	for _, p := range problems {
		if !known[p.Error()] {
			found = append(found, changeOf(p))
		}
	}
	for _, f := range files {
		found = append(found, goneKinds(f, before, after)...)
	}
	return found, errors.Join(err, also)
}

// problemsOf are the errors and warnings of check.
func problemsOf(files []*load.File, source kinds.Source) (config.Errors, error) {
	list, problems, err := compile.All(files, nil, compile.Options{Kinds: source})
	for _, c := range list {
		for _, found := range [][]config.Error{c.Pipeline.Refusals, c.Pipeline.Warnings} {
			for i := range found {
				problems = append(problems, &found[i])
			}
		}
	}
	return problems, err
}

func changeOf(e *config.Error) crddiff.Change {
	at := e.File
	if e.Line > 0 {
		at = fmt.Sprintf("%s:%d", e.File, e.Line)
	}
	return crddiff.Change{Config: at, Path: e.Path, Level: crddiff.Breaking, Reason: e.Problem, Fix: e.Fix}
}

// goneKinds lists the versions that a config names and that are no longer served.
func goneKinds(f *load.File, before, after kinds.Source) []crddiff.Change {
	var found []crddiff.Change
	for _, gvk := range f.Kinds() {
		_, unknown := before.Kind(gvk)
		_, gone := after.Kind(gvk)
		if unknown == nil && errors.Is(gone, kinds.ErrUnknown) {
			found = append(found, crddiff.Change{Config: f.Path, Path: gvk.Kind, Level: crddiff.Breaking,
				Reason: fmt.Sprintf("operator %s reads %s, which is not served any more", f.Metadata.Name, gvk.GroupVersion()),
				Fix:    "write a version that both serve, before the definition changes"})
		}
	}
	return found
}
