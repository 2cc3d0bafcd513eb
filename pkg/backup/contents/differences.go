package contents

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/corollary-dev/corollary/pkg/fieldpath"
)

// Differences names the fields in which an object in the cluster is not as it should be, as words say it with both
// values, unless they are secret. An empty map or list is a value. nulls: so is null, as in custom kinds, for which the
// API server stores it where the schema allows it.
func Differences(want, live any, words func(want, live Value) string, nulls, secret bool) []string {
	d := &differ{words: words, nulls: nulls, secret: secret}
	d.walk(nil, Value{want, true}, Value{live, true})
	return d.list
}

// InBackup says how a field of an object in the cluster is not as in the backup.
func InBackup(want, live Value) string {
	return fmt.Sprintf(" is %s in the cluster and %s in the backup", live, want)
}

// OnceSent says how the API server stores a field otherwise than it was sent.
func OnceSent(want, live Value) string {
	switch {
	case !live.has:
		return fmt.Sprintf(" is lost: the API server drops %s", want)
	case !want.has:
		return fmt.Sprintf(": the API server adds %s", live)
	}
	return fmt.Sprintf(": the API server stores %s instead of %s", live, want)
}

type differ struct {
	words         func(want, live Value) string
	nulls, secret bool
	list          []string
}

// Value is one that a field has, or none.
type Value struct {
	any
	has bool
}

func (d *differ) walk(path fieldpath.Path, want, live Value) {
	if !d.nulls {
		want.has, live.has = want.any != nil, live.any != nil
	}
	switch w := want.any.(type) {
	case map[string]any:
		if l, ok := live.any.(map[string]any); ok {
			d.maps(path, w, l)
			return
		}
	case []any:
		if l, ok := live.any.([]any); ok && len(l) == len(w) {
			for i := range w {
				d.walk(append(slices.Clip(path), fieldpath.Step{Kind: fieldpath.IndexStep, Index: i}),
					Value{w[i], true}, Value{l[i], true})
			}
			return
		}
	}
	if reflect.DeepEqual(want, live) {
		return
	}
	if d.secret {
		d.list = append(d.list, path.String()+" differs")
		return
	}
	d.list = append(d.list, path.String()+d.words(want, live))
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
		w, wanted := want[key]
		l, lives := live[key]
		d.walk(path.Child(key), Value{w, wanted}, Value{l, lives})
	}
}

func (v Value) String() string {
	if !v.has {
		return "absent"
	}
	text, err := json.Marshal(v.any)
	if err != nil {
		return fmt.Sprint(v.any)
	}
	if len(text) > 80 {
		return string([]rune(string(text[:80]))) + "…"
	}
	return string(text)
}
