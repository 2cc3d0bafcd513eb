package render

import (
	"reflect"

	"github.com/Masterminds/sprig/v3"
)

var (
	sprigUntilStep      = sprig.TxtFuncMap()["untilStep"].(func(int, int, int) []int)
	sprigSeq            = sprig.TxtFuncMap()["seq"].(func(...int) string)
	sprigDerivePassword = sprig.TxtFuncMap()["derivePassword"].(func(uint32, string, string, string, string) string)
)

func (r *run) until(n any) ([]int, error) {
	stop, err := count(n)
	if err != nil {
		return nil, err
	}
	if stop < 0 {
		return r.untilStep(0, stop, -1)
	}
	return r.untilStep(0, stop, 1)
}

func (r *run) untilStep(start, stop, step any) ([]int, error) {
	var n [3]int
	for i, v := range []any{start, stop, step} {
		var err error
		if n[i], err = count(v); err != nil {
			return nil, err
		}
	}
	span := n[1] - n[0]
	if n[2] == 0 || (span < 0) != (n[2] < 0) {
		return []int{}, nil
	}
	items := span/n[2] + 1
	if items > r.left/8 {
		return nil, r.exhaust()
	}
	return sprigUntilStep(n[0], n[1], n[2]), r.spend(8 * items)
}

func (r *run) seq(params ...any) (string, error) {
	n := make([]int, len(params))
	for i, v := range params {
		var err error
		if n[i], err = count(v); err != nil {
			return "", err
		}
	}
	// At most it counts from the first number to the last in steps of one.
	if len(n) > 0 {
		span := n[len(n)-1]
		if len(n) > 1 {
			span -= n[0]
		}
		if most := r.left / 20; span > most || span < -most {
			return "", r.exhaust()
		}
	}
	return r.spent(sprigSeq(n...), nil)
}

// items gives the items of a list of any type, charged to the execution.
func (r *run) items(list any, name string) ([]any, error) {
	if l, ok := list.([]any); ok {
		return l, r.spend(len(l))
	}
	v := reflect.ValueOf(list)
	if v.Kind() != reflect.Slice && v.Kind() != reflect.Array {
		return nil, problemf("", "%s takes a list, not %s", name, typeName(list))
	}
	out := make([]any, v.Len())
	for i := range out {
		out[i] = v.Index(i).Interface()
	}
	return out, r.spend(len(out))
}

func (r *run) concat(lists ...any) ([]any, error) {
	out := []any{}
	for _, list := range lists {
		items, err := r.items(list, "concat")
		if err != nil {
			return nil, err
		}
		out = append(out, items...)
	}
	return out, nil
}

func (r *run) append(list, item any) ([]any, error) {
	items, err := r.items(list, "append")
	return append(append(make([]any, 0, len(items)+1), items...), item), err
}

func (r *run) prepend(list, item any) ([]any, error) {
	items, err := r.items(list, "prepend")
	return append([]any{item}, items...), err
}

func (r *run) shallowCopy(m map[string]any) (map[string]any, error) {
	out := make(map[string]any, len(m)+1)
	for key, value := range m {
		out[key] = value
	}
	return out, r.spend(len(m))
}

// set gives a copy of m with one key changed. sprig changes m itself, which could be an object in a cache.
func (r *run) set(m map[string]any, key string, value any) (map[string]any, error) {
	out, err := r.shallowCopy(m)
	out[key] = value
	return out, err
}

func (r *run) unset(m map[string]any, key string) (map[string]any, error) {
	out, err := r.shallowCopy(m)
	delete(out, key)
	return out, err
}

func (r *run) deepCopy(v any) (any, error) { return r.copyValue(v) }

// merge runs one of sprig's merges on copies: it changes its first map, and shares parts of the others with it.
func (r *run) merge(merge func(map[string]any, ...map[string]any) (any, error), dst map[string]any, srcs []map[string]any) (any, error) {
	copied, err := r.copyMap(dst)
	if err != nil {
		return nil, err
	}
	others := make([]map[string]any, len(srcs))
	for i, src := range srcs {
		c, err := r.copyMap(src)
		if err != nil {
			return nil, err
		}
		others[i] = c.(map[string]any)
	}
	return merge(copied.(map[string]any), others...)
}

// derivePassword takes long by design, so it counts as many steps.
func (r *run) derivePassword(counter uint32, kind, password, user, site string) (string, error) {
	if err := r.step(10_000); err != nil {
		return "", err
	}
	return sprigDerivePassword(counter, kind, password, user, site), nil
}
