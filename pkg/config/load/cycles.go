package load

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/corollary-dev/corollary/pkg/config"
)

// edge says that downstreams of one operator can be upstreams of another.
type edge struct {
	to         *File
	downstream int
}

// cycles reports chains of operators that come back to where they began, so that one object would make new ones
// without end. An operator's own downstreams are never its upstreams (they have its owner mark), so it takes two.
func cycles(files []*File) config.Errors {
	graph := map[*File][]edge{}
	for _, from := range files {
		for _, to := range files {
			if i := feeds(from, to); i >= 0 {
				graph[from] = append(graph[from], edge{to, i})
			}
		}
	}
	var errs config.Errors
	var reported []*File
	for _, f := range files {
		if slices.Contains(reported, f) {
			continue
		}
		chain := shortest(graph, f)
		if chain == nil {
			continue
		}
		at := f
		names, kinds := []string{f.Metadata.Name}, []string{f.Watch.Kind}
		for _, e := range chain {
			reported = append(reported, at)
			at = e.to
			names, kinds = append(names, at.Metadata.Name), append(kinds, at.Watch.Kind)
		}
		errs = append(errs, f.Errorf(downstreamKind(chain[0].downstream),
			"give one of the watches a labelSelector that the constant labels of the operator before it do not satisfy",
			"operators %s make a cycle of kinds: %s", strings.Join(names, " → "), strings.Join(kinds, " → ")))
	}
	return errs
}

// feeds returns the index of the first downstream of f that is an upstream of to, or -1.
func feeds(f *File, to *File) int {
	if f == to || to.Watch.Kind == "" {
		return -1
	}
	watched := config.GroupKind(to.Watch.APIVersion, to.Watch.Kind)
	i := slices.IndexFunc(f.Downstreams, func(d config.Downstream) bool {
		return !d.OwnsFields() && config.GroupKind(d.APIVersion, d.Kind) == watched && sharesNamespace(f, d, to)
	})
	if i >= 0 && !reaches(f, to) { // last, since selectors take time and few operators get so far
		return -1
	}
	return i
}

// reaches reports whether the labels that all downstreams of f have satisfy the label selector of to.
func reaches(f *File, to *File) bool {
	if to.Watch.LabelSelector == nil {
		return true
	}
	sel, err := metav1.LabelSelectorAsSelector(to.Watch.LabelSelector)
	if err != nil {
		return true // reported where the selector is
	}
	constant := labels.Set{}
	for k, text := range f.Conventions.Labels {
		if !f.IsTemplate(text) {
			constant[k] = text
		}
	}
	return sel.Matches(constant)
}

// sharesNamespace reports whether downstream d of f may live where to watches, as far as namespaces are listed.
func sharesNamespace(f *File, d config.Downstream, to *File) bool {
	var in []string
	switch d.TargetNamespaces.From {
	case config.NamespacesSame:
		in = f.Watch.Namespaces
	case config.NamespacesList:
		in = d.TargetNamespaces.Names
	}
	if len(in) == 0 || len(to.Watch.Namespaces) == 0 {
		return true
	}
	return slices.ContainsFunc(in, func(ns string) bool { return slices.Contains(to.Watch.Namespaces, ns) })
}

// shortest returns the shortest way from f back to f, nil if there is none.
func shortest(graph map[*File][]edge, f *File) []edge {
	ways := [][]edge{nil}
	seen := map[*File]bool{}
	for len(ways) > 0 {
		way := ways[0]
		ways = ways[1:]
		at := f
		if len(way) > 0 {
			at = way[len(way)-1].to
		}
		for _, e := range graph[at] {
			next := append(slices.Clone(way), e)
			if e.to == f {
				return next
			}
			if !seen[e.to] {
				seen[e.to] = true
				ways = append(ways, next)
			}
		}
	}
	return nil
}
