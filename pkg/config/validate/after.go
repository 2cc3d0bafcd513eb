package validate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/config/document"
)

// checkOrder checks that the downstreams that others come after exist, and that no downstream comes after itself in the
// end.
func checkOrder(v *validator) {
	var names []string
	for _, d := range v.Downstreams {
		names = append(names, d.Name)
	}
	for i, d := range v.Downstreams {
		for k, a := range d.After {
			at := fmt.Sprintf("downstreams[%d].after[%d]", i, k)
			switch same := func(other config.After) bool { return other.Name == a.Name }; {
			case v.Reported(at):
			case a.Name == "":
				v.Add(at, "name a downstream", "required value is missing")
			case !slices.Contains(names, a.Name):
				v.Add(at, document.FixForUnknown(a.Name, names, "there are"), "there is no downstream %q", a.Name)
			case slices.ContainsFunc(d.After[:k], same):
				v.Add(at, "remove one of them", "%q is listed twice", a.Name)
			default:
				way := wayTo(v, d.Name, a.Name, map[string]bool{})
				earlier := func(name string) bool { return slices.Index(names, name) < i }
				if way != nil && !slices.ContainsFunc(way, earlier) { // each circle once
					v.Add(at, "remove one of them", "downstreams come after each other: %s after %s", d.Name,
						strings.Join(way, " after "))
				}
			}
		}
	}
}

// wayTo names the downstreams from one to another that it comes after; nil if there is no way.
func wayTo(v *validator, to, from string, seen map[string]bool) []string {
	i := slices.IndexFunc(v.Downstreams, func(d config.Downstream) bool { return d.Name == from })
	if seen[from] || i < 0 {
		return nil
	}
	if seen[from] = true; from == to {
		return []string{to}
	}
	for _, a := range v.Downstreams[i].After {
		if way := wayTo(v, to, a.Name, seen); way != nil {
			return append([]string{from}, way...)
		}
	}
	return nil
}
