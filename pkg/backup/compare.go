package backup

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/corollary-dev/corollary/pkg/fieldpath"
)

// differences names the fields in which an object in the cluster is not as it should be, with both values unless they are secret.
func differences(want, live any, secret bool) []string {
	d := &differ{secret: secret}
	d.walk(nil, want, live)
	return d.list
}

type differ struct {
	secret bool
	list   []string
}

func (d *differ) walk(path fieldpath.Path, want, live any) {
	switch w := want.(type) {
	case map[string]any:
		if l, ok := live.(map[string]any); ok {
			d.maps(path, w, l)
			return
		}
	case []any:
		if l, ok := live.([]any); ok && len(l) == len(w) {
			for i := range w {
				d.walk(append(slices.Clip(path), fieldpath.Step{Kind: fieldpath.IndexStep, Index: i}), w[i], l[i])
			}
			return
		}
	}
	if reflect.DeepEqual(want, live) || empty(want) && empty(live) {
		return
	}
	if d.secret {
		d.list = append(d.list, path.String()+" differs")
		return
	}
	d.list = append(d.list, fmt.Sprintf("%s is %s in the cluster and %s in the backup", path, show(live), show(want)))
}

func (d *differ) maps(path fieldpath.Path, want, live map[string]any) {
	keys := slices.Collect(maps.Keys(want))
	for key := range live {
		if _, ok := want[key]; !ok {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for _, key := range keys {
		d.walk(path.Child(key), want[key], live[key])
	}
}

// empty values come and go without anybody's doing: the API server leaves some of them out.
func empty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	}
	return false
}

func show(v any) string {
	if v == nil {
		return "absent"
	}
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	if len(text) > 80 {
		return string([]rune(string(text[:80]))) + "…"
	}
	return string(text)
}
