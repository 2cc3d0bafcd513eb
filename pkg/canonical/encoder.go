package canonical

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
)

// Encoder writes JSON values as bytes that are different for different values: each value is a letter for its type and
// then its content, strings with their length first, maps and lists with an end mark. Map keys are sorted, and nulls in
// maps count. It is ready for use.
type Encoder struct {
	buf        []byte
	todo       []pair // a stack: the remaining keys of each map that is being written
	most       int    // the maximum length of todo
	dropsNulls bool   // nulls in maps do not count
}

type pair struct {
	key   string
	value any
}

func comparePairs(a, b pair) int { return strings.Compare(a.key, b.key) }

var encoders = sync.Pool{New: func() any { return &Encoder{buf: make([]byte, 0, 4096)} }}

func (e *Encoder) release() {
	if e.Reset() {
		encoders.Put(e)
	}
}

// largestPooled limits pooled buffers, so that one large object does not keep its buffer forever.
const largestPooled = 1 << 18

// Reset forgets what was written, and keeps the memory; it returns false if that is too large to be kept.
func (e *Encoder) Reset() bool {
	if cap(e.buf) > largestPooled || cap(e.todo) > largestPooled/64 {
		return false
	}
	clear(e.todo[:e.most])
	e.buf, e.todo, e.most, e.dropsNulls = e.buf[:0], e.todo[:0], 0, false
	return true
}

// Sum returns the digest of what was written.
func (e *Encoder) Sum() Sum {
	full := sha256.Sum256(e.buf)
	return Sum(full[:len(Sum{})])
}

// OpenMap begins a map of which each Key and its value follow, in order; Close ends it.
func (e *Encoder) OpenMap() { e.buf = append(e.buf, 'm') }

// OpenList begins a list of which the items follow; Close ends it.
func (e *Encoder) OpenList() { e.buf = append(e.buf, 'l') }

// Close ends a map or a list.
func (e *Encoder) Close() { e.buf = append(e.buf, 'e') }

// Key writes a key of a map.
func (e *Encoder) Key(key string) { e.text('k', key) }

// Value writes a value.
func (e *Encoder) Value(v any) {
	switch v := v.(type) {
	case nil:
		e.buf = append(e.buf, 'n')
	case string:
		e.text('s', v)
	case bool:
		if v {
			e.buf = append(e.buf, 't')
		} else {
			e.buf = append(e.buf, 'f')
		}
	case int64:
		e.integer(v)
	case float64:
		e.float(v)
	case map[string]any:
		e.document(v)
	case []any:
		e.OpenList()
		for _, item := range v {
			e.Value(item)
		}
		e.Close()
	default:
		e.other(v)
	}
}

func (e *Encoder) document(m map[string]any) {
	from := len(e.todo)
	for k, v := range m {
		if v != nil || !e.dropsNulls {
			e.todo = append(e.todo, pair{key: k, value: v})
		}
	}
	slices.SortFunc(e.todo[from:], comparePairs)
	to := len(e.todo)
	e.most = max(e.most, to)
	e.OpenMap()
	for i := from; i < to; i++ {
		e.Key(e.todo[i].key)
		e.Value(e.todo[i].value)
	}
	e.Close()
	e.todo = e.todo[:from]
}

func (e *Encoder) text(letter byte, s string) {
	e.buf = append(e.buf, letter)
	e.buf = binary.AppendUvarint(e.buf, uint64(len(s)))
	e.buf = append(e.buf, s...)
}

func (e *Encoder) integer(i int64) {
	e.buf = append(e.buf, 'i')
	e.buf = binary.BigEndian.AppendUint64(e.buf, uint64(i))
}

func (e *Encoder) float(f float64) {
	if i, ok := Integer(f); ok {
		e.integer(i)
		return
	}
	e.buf = append(e.buf, 'd')
	e.buf = binary.BigEndian.AppendUint64(e.buf, math.Float64bits(f))
}

// other writes values that are not of JSON types, such as an int, as Form converts them, else as their JSON, so that a
// digest never fails.
func (e *Encoder) other(v any) {
	if c, err := canonicalNumber(v, nil); err == nil {
		e.Value(c)
		return
	}
	text, err := json.Marshal(v)
	if err != nil {
		text = fmt.Appendf(nil, "%T %v", v, v)
	}
	e.text('j', string(text))
}
