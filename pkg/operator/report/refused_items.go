package report

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/canonical"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/status"
)

// This file is about items of status.downstreams that cannot be stored. Whoever writes an upstream may choose the name
// of an object: like a value of status.fields, it must not keep the conditions out of the status.

// refusedItem is an item that the API server refuses. It stays as the status has it, so that a name once recorded is
// not lost.
type refusedItem struct {
	refusal
	// out: it was refused as it is, too, and is left out.
	out bool
}

// refusedItems are the items, by name, that the causes of a refusal are about.
func refusedItems(
	s *operator.Settings, report Report, upstream *unstructured.Unstructured, causes []metav1.StatusCause,
) map[string]refusal {
	all := map[string]refusal{}
	if s.DownstreamsPath == nil {
		return all
	}
	path := asCause(s.DownstreamsPath)
	sent, standing := itemsIn(s, map[string]any{"status": report.Status}), itemsIn(s, upstream.Object)
	for _, c := range causes {
		if !isWithin(c.Field, path) {
			continue
		}
		// Where others have items of their own, the place of ours in the list is not known.
		blamed := sent
		unsent := func(name string) bool { return !slices.Contains(sent, name) }
		if i := indexAfter(c.Field, path); i >= 0 && i < len(sent) && !slices.ContainsFunc(standing, unsent) {
			blamed = sent[i : i+1]
		}
		for _, name := range blamed {
			r, known := all[name]
			alone := slices.Contains(wrongAlone, c.Type) && (r.alone || !known)
			if !known || string(c.Type) < r.why {
				r.why = string(c.Type)
			}
			r.alone = alone
			all[name] = r
		}
	}
	return all
}

// itemsIn are the names of the items that an upstream's status has, in their order.
func itemsIn(s *operator.Settings, upstream map[string]any) (names []string) {
	list, _ := fieldpath.Get(upstream, s.DownstreamsPath)
	for _, r := range status.RecordedFrom(list) {
		names = append(names, s.KeyOf(r))
	}
	return names
}

// indexAfter is the index of a list's item in a path that begins with the list's; -1 if there is none.
func indexAfter(path, list string) int {
	text, _, ok := strings.Cut(strings.TrimPrefix(path[len(list):], "["), "]")
	i, err := strconv.Atoi(text)
	if !ok || err != nil {
		return -1
	}
	return i
}

// refuseItems takes in which items are refused, besides those that were before; all: each that is not is, for that
// reason. It reports whether that is anything new.
func refuseItems(
	s *operator.Settings, d *draft, next *RefusedFields, named map[string]refusal, all bool, reason string,
) (news bool) {
	before := next.items
	next.items = maps.Clone(before)
	if next.items == nil {
		next.items = map[string]refusedItem{}
	}
	for name, r := range named {
		if old, again := before[name]; !again || !old.out {
			next.items[name], news = refusedItem{r, again}, true
		}
	}
	for _, r := range d.recorded {
		if _, known := next.items[s.KeyOf(r)]; all && !known && s.DownstreamsPath != nil {
			next.items[s.KeyOf(r)], news = refusedItem{refusal: refusal{why: reason}}, true
		}
	}
	return news
}

// refusedItemOf is the digest of what may be wrong with an item.
func refusedItemOf(
	s *operator.Settings, d *draft, upstream *unstructured.Unstructured, name string, alone bool,
) canonical.Sum {
	i := slices.IndexFunc(d.recorded, func(r status.Recorded) bool { return s.KeyOf(r) == name })
	switch {
	case i < 0:
		return canonical.Sum{}
	case alone:
		return canonical.Digest(status.RecordedList(d.recorded[i : i+1]))
	}
	return wholeOf(s, d, upstream)
}

// withoutRefusedItems are the identifiers that can be stored.
func withoutRefusedItems(
	s *operator.Settings, recorded []status.Recorded, upstream *unstructured.Unstructured, refused RefusedFields,
) []status.Recorded {
	if len(refused.items) == 0 {
		return recorded
	}
	list, _ := fieldpath.Get(upstream.Object, s.DownstreamsPath)
	standing := status.RecordedFrom(list)
	var kept []status.Recorded
	for _, r := range recorded {
		item, is := refused.items[s.KeyOf(r)]
		if !is {
			kept = append(kept, r)
			continue
		}
		i := slices.IndexFunc(standing, func(have status.Recorded) bool {
			return s.KeyOf(have) == s.KeyOf(r)
		})
		if i >= 0 && !item.out {
			kept = append(kept, standing[i])
		}
	}
	return kept
}

// refusedItemsText lists them for a message.
func refusedItemsText(s *operator.Settings, refused RefusedFields) (list []string) {
	for _, name := range slices.Sorted(maps.Keys(refused.items)) {
		list = append(list, fmt.Sprintf("%s[name=%s] (%s)", s.Config.Status.Downstreams, name, refused.items[name].why))
	}
	return list
}
