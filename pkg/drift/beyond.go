package drift

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/fieldpath"
)

// systemMetadata is what the API server writes into every object's metadata, and the names, which differ between an
// object and a dry-run create of it under a generated name.
var systemMetadata = append([]string{"generateName", "deletionTimestamp", "deletionGracePeriodSeconds"}, identity...)

// Beyond returns the places that live has and want has not, as sorted text. want is the answer to a dry-run create of
// what we would apply, with all that the API server and admission add. Status, the metadata that the system writes, and
// annotations that only a writer of the status has (a Deployment's revision) are left out.
//
// It is places that count, not values: those that we apply an apply sets right, and others the API server may have
// allocated (a Service's addresses). Items of lists are matched by their keys, or in sets by their values, where want's
// managedFields say so; of other lists scalars are matched by number, and maps must stand in want as they are.
func Beyond(live, want *unstructured.Unstructured) []string {
	b := beyond{}
	shape := func(obj map[string]any) map[string]any {
		out := make(map[string]any, len(obj))
		for k, value := range obj {
			if k == "metadata" {
				value = strip(value)
			}
			if k != "status" && k != "apiVersion" && k != "kind" {
				out[k] = value
			}
		}
		return out
	}
	b.maps(shape(live.Object), shape(want.Object), ownersOf(entries(want)), nil)
	es := entries(live)
	b.found = slices.DeleteFunc(b.found, func(p fieldpath.Path) bool { return statusAnnotation(es, p) })
	out := make([]string, len(b.found))
	for i, p := range b.found {
		out[i] = p.String()
	}
	slices.Sort(out)
	return out
}

func strip(metadata any) any {
	m, ok := metadata.(map[string]any)
	if !ok {
		return metadata
	}
	out := make(map[string]any, len(m))
	for k, value := range m {
		if !slices.Contains(systemMetadata, k) {
			out[k] = value
		}
	}
	return out
}

// statusAnnotation reports whether p is an annotation that belongs to writers of the status subresource alone.
func statusAnnotation(es []entry, p fieldpath.Path) bool {
	if !p.HasPrefix(fieldpath.New("metadata", "annotations")) || len(p) != 3 {
		return false
	}
	byStatus := false
	for _, e := range es {
		if _, holding := e.owned.follow(nil, p); holding == holdsNothing {
			continue
		}
		if e.subresource != "status" {
			return false
		}
		byStatus = true
	}
	return byStatus
}

type beyond struct{ found []fieldpath.Path }

// maps and lists compare with want; held is how want's managers hold the place.

func (b *beyond) values(live, want any, held owners, at *trail) {
	switch live := live.(type) {
	case map[string]any:
		want, _ := want.(map[string]any)
		b.maps(live, want, held, at)
	case []any:
		want, _ := want.([]any)
		b.lists(live, want, held, at)
	}
}

func (b *beyond) maps(live, want map[string]any, held owners, at *trail) {
	for k, value := range live {
		wanted, ok := want[k]
		below := &trail{parent: at, field: k}
		if !ok {
			b.leaves(value, below)
			continue
		}
		b.values(value, wanted, held.field(k), below)
	}
}

func (b *beyond) lists(live, want []any, held owners, at *trail) {
	within := held.items()
	names := named(within, -1)
	valued := slices.ContainsFunc(within, func(it *items) bool { return it != nil && it.values })
	twins := names.twins(want)
	same := make(map[Sum]bool, len(want))
	for _, item := range want {
		same[Digest(item)] = true
	}
	for i, item := range live {
		if same[Digest(item)] || !valued && isScalar(item) && i < len(want) && isScalar(want[i]) {
			continue
		}
		step := names.step(item, i, at)
		if j, ok := twins.find(item); ok {
			b.values(item, want[j], held.item(within, want[j], j), step)
			continue
		}
		b.leaves(item, step)
	}
}

// leaves lists the ends of value, or the place itself where it is empty.
func (b *beyond) leaves(value any, at *trail) {
	m, ok := value.(map[string]any)
	if !ok || len(m) == 0 {
		b.found = append(b.found, at.path())
		return
	}
	for k, below := range m {
		b.leaves(below, &trail{parent: at, field: k})
	}
}

func isScalar(v any) bool {
	switch v.(type) {
	case map[string]any, []any:
		return false
	default:
		return true
	}
}
