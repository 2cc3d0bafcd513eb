package managed

import (
	"slices"
	"strings"
	"sync"

	"github.com/corollary-dev/corollary/pkg/canonical"
)

// Sum returns the digest of the projection of obj and of what is owned and absent.
func (f Fields) Sum(obj map[string]any) canonical.Sum {
	e := projections.Get().(*projection)
	defer e.release()
	if f.IsLeaf() {
		e.Value(map[string]any{}) // nobody owns an object as a whole
		return e.Sum()
	}
	e.fields(obj, f)
	if e.missing {
		if absent := f.absent(obj); len(absent) > 0 {
			e.Value(map[string]any(absent))
		}
	}
	return e.Sum()
}

// projection writes a projection without building it.
type projection struct {
	canonical.Encoder
	todo    []place  // a stack: the remaining fields of each map that is being written
	most    int      // the maximum length of todo
	free    []*Items // unused ones
	missing bool     // something owned may be missing
}

// place is a field, its live value and what is owned of it.
type place struct {
	name  string
	live  any
	owned Fields
}

func comparePlaces(a, b place) int { return strings.Compare(a.name, b.name) }

var projections = sync.Pool{New: func() any { return &projection{} }}

// maxPooledPlaces limits what is kept for reuse, so that one large object does not keep it forever.
const maxPooledPlaces = 1 << 12

func (e *projection) release() {
	if !e.Reset() || cap(e.todo) > maxPooledPlaces {
		return
	}
	clear(e.todo[:e.most])
	for _, it := range e.free {
		it.read(nil)
		clear(it.keys[:cap(it.keys)])
		clear(it.names[:cap(it.names)])
	}
	e.todo, e.most, e.missing = e.todo[:0], 0, false
	projections.Put(e)
}

func (e *projection) value(live any, owned Fields) {
	if owned.IsLeaf() {
		e.Value(live)
		return
	}
	switch live := live.(type) {
	case map[string]any:
		e.fields(live, owned)
	case []any:
		e.list(live, owned)
	default:
		e.missing = true
		e.Value(live)
	}
}

func (e *projection) fields(live map[string]any, owned Fields) {
	from := len(e.todo)
	for key, below := range owned {
		below, ok := below.(map[string]any)
		if !ok || below == nil || key == ownDot {
			continue
		}
		name, ok := CutField(key)
		value, there := live[name]
		if !ok || !there {
			e.missing = true
			continue
		}
		e.todo = append(e.todo, place{name, value, below})
	}
	slices.SortFunc(e.todo[from:], comparePlaces)
	to := len(e.todo)
	e.most = max(e.most, to)
	e.OpenMap()
	for i := from; i < to; i++ {
		next := e.todo[i]
		e.Key(next.name)
		e.value(next.live, next.owned)
	}
	e.Close()
	e.todo = e.todo[:from]
}

func (e *projection) list(live []any, owned Fields) {
	items := e.items()
	items.read(owned)
	e.OpenList()
	for i, item := range live {
		if below, ok := items.Of(item, i); ok {
			items.markFound()
			e.value(item, below)
		}
	}
	e.Close()
	e.missing = e.missing || !items.complete()
	e.free = append(e.free, items)
}

func (e *projection) items() *Items {
	if n := len(e.free); n > 0 {
		it := e.free[n-1]
		e.free = e.free[:n-1]
		return it
	}
	return &Items{}
}
