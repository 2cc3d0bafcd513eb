package render

import (
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/Masterminds/sprig/v3"
)

var sprigDerivePassword = sprig.TxtFuncMap()["derivePassword"].(func(uint32, string, string, string, string) string)

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
	n, err := counts(start, stop, step)
	if err != nil {
		return nil, err
	}
	return r.numbers(n[0], n[1], n[2], 0)
}

func counts(values ...any) ([]int, error) {
	out := make([]int, len(values))
	for i, v := range values {
		n, err := count(v)
		if err != nil {
			return nil, err
		}
		out[i] = n
	}
	return out, nil
}

// numbers counts from start to stop in steps. more is 1 if stop itself is included, otherwise 0.
func (r *run) numbers(start, stop, step, more int) ([]int, error) {
	if step == 0 || (stop < start) != (step < 0) {
		if stop != start || more == 0 || step == 0 {
			return []int{}, nil
		}
	}
	// The difference of two integers can overflow, and so can the value after the last one.
	distance, each := uint64(stop)-uint64(start), uint64(step)
	if step < 0 {
		distance, each = uint64(start)-uint64(stop), -uint64(step)
	}
	items := distance / each
	if items > uint64(r.limits.Bytes) {
		items = uint64(r.limits.Bytes)
	} else if distance%each != 0 || more == 1 {
		items++
	}
	if err := r.spend(times(8, int(items))); err != nil {
		return nil, err
	}
	if err := r.work(int(items) / 256); err != nil {
		return nil, err
	}
	out := make([]int, items)
	for i := range out {
		out[i] = start + i*step
	}
	return out, nil
}

// seq prints the numbers like the command seq: arguments are LAST, FIRST LAST, or FIRST STEP LAST.
func (r *run) seq(params ...any) (string, error) {
	n, err := counts(params...)
	if err != nil {
		return "", err
	}
	start, step := 1, 0
	var stop int
	switch len(n) {
	case 1:
		stop = n[0]
	case 2:
		start, stop = n[0], n[1]
	case 3:
		start, step, stop = n[0], n[1], n[2]
		if step == 0 {
			return "", nil
		}
	default:
		return "", nil
	}
	if step == 0 {
		if step = 1; stop < start {
			step = -1
		}
	}
	list, err := r.numbers(start, stop, step, 1)
	if err != nil {
		return "", err
	}
	if err := r.textCost(times(64, len(list))); err != nil {
		return "", err
	}
	var b strings.Builder
	for i, number := range list {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(strconv.Itoa(number))
	}
	return b.String(), nil
}

// items returns the items of a list of any type.
func (r *run) items(list any, name string) ([]any, error) {
	if l, ok := list.([]any); ok {
		return l, nil
	}
	v := reflect.ValueOf(list)
	if v.Kind() != reflect.Slice && v.Kind() != reflect.Array {
		return nil, problemf("", "%s takes a list, not %s", name, typeName(list))
	}
	if err := r.listCost(v.Len()); err != nil {
		return nil, err
	}
	out := make([]any, v.Len())
	for i := range out {
		out[i] = v.Index(i).Interface()
	}
	return out, nil
}

// listCost takes the cost of copying a list with this many items.
func (r *run) listCost(n int) error {
	if err := r.work(n / 256); err != nil {
		return err
	}
	return r.spend(times(24, n+1))
}

func (r *run) concat(lists ...any) ([]any, error) {
	all, n := make([][]any, len(lists)), 0
	for i, list := range lists {
		items, err := r.items(list, "concat")
		if err != nil {
			return nil, err
		}
		all[i], n = items, n+len(items)
	}
	if err := r.listCost(n); err != nil {
		return nil, err
	}
	return append([]any{}, slices.Concat(all...)...), nil
}

func (r *run) append(list, item any) ([]any, error) {
	items, err := r.items(list, "append")
	if err != nil {
		return nil, err
	}
	if err := r.listCost(len(items)); err != nil {
		return nil, err
	}
	return append(append(make([]any, 0, len(items)+1), items...), item), nil
}

func (r *run) prepend(list, item any) ([]any, error) {
	items, err := r.items(list, "prepend")
	if err != nil {
		return nil, err
	}
	if err := r.listCost(len(items)); err != nil {
		return nil, err
	}
	return append(append(make([]any, 0, len(items)+1), item), items...), nil
}

func (r *run) shallowCopy(m map[string]any) (map[string]any, error) {
	if err := r.spend(mapBytes(len(m) + 1)); err != nil {
		return nil, err
	}
	if err := r.work(len(m) / 16); err != nil {
		return nil, err
	}
	out := make(map[string]any, len(m)+1)
	for key, value := range m {
		out[key] = value
	}
	return out, nil
}

// set returns a copy of m with one key changed. sprig changes m itself, which could be an object in a cache.
func (r *run) set(m map[string]any, key string, value any) (map[string]any, error) {
	out, err := r.shallowCopy(m)
	if err != nil {
		return nil, err
	}
	out[key] = value
	return out, nil
}

func (r *run) unset(m map[string]any, key string) (map[string]any, error) {
	out, err := r.shallowCopy(m)
	if err != nil {
		return nil, err
	}
	delete(out, key)
	return out, nil
}

func (r *run) deepCopy(v any) (any, error) { return r.copyValue(v) }

// merge runs one of sprig's merges on copies: it changes its first map and shares parts of the others with it.
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
	if err := r.work(len(others)); err != nil {
		return nil, err
	}
	return merge(copied.(map[string]any), others...)
}

// derivePassword is slow and uses much memory by design: an upstream can have two.
func (r *run) derivePassword(counter uint32, kind, password, user, site string) (string, error) {
	if err := r.work(200_000); err != nil {
		return "", err
	}
	if err := r.textCost(plus(20<<20, times(4, len(password)+len(user)+len(site)))); err != nil {
		return "", err
	}
	return sprigDerivePassword(counter, kind, password, user, site), nil
}
