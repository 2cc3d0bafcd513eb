package drift

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
)

// Sum is a digest of a JSON value: equal for values with the same canonical form, different for others (sha256 cut to 128 bits,
// because users could search for collisions of a weaker digest). It is comparable. Other versions may use another form, so
// store Text, which includes it.
type Sum [16]byte

// sumForm is the version of a projection's digest. Change it with anything that changes the digest of an object.
const sumForm = "1"

// Text returns the sum for storage; ParseSum parses it, unless another version with another form wrote it.
func (s Sum) Text() string { return sumForm + "-" + s.String() }

// ParseSum parses the result of Text; ok is false for anything else.
func ParseSum(text string) (Sum, bool) {
	digits, ok := strings.CutPrefix(text, sumForm+"-")
	bytes, err := hex.DecodeString(digits)
	if !ok || err != nil || len(bytes) != len(Sum{}) {
		return Sum{}, false
	}
	return Sum(bytes), true
}

// String returns the sum as hexadecimal text.
func (s Sum) String() string { return hex.EncodeToString(s[:]) }

// Digest returns the digest of a JSON value. Nulls in maps and the Go type of a number do not count: {"a": null} has the digest
// of {}, 1.0 the one of 1. v may nest as deep as a JSON decoder allows.
func Digest(v any) Sum {
	e := encoders.Get().(*encoder)
	defer e.release()
	e.value(v)
	return e.sum()
}

// exactDigest is Digest in which nulls count.
func exactDigest(v any) Sum {
	e := encoders.Get().(*encoder)
	defer e.release()
	e.nulls = true
	e.value(v)
	return e.sum()
}

func (e *encoder) sum() Sum {
	full := sha256.Sum256(e.buf)
	return Sum(full[:len(Sum{})])
}

// encoder writes a JSON value as bytes that are different for different values: each value is a letter for its type and then
// its content, strings with their length first, maps and lists with an end mark. Map keys are sorted.
type encoder struct {
	buf  []byte
	todo []pair   // a stack: the remaining keys of each map that is being written
	most int      // the maximum length of todo
	free []*items // unused ones
	// nulls means that nulls in maps count too. missing means that something owned may be missing.
	nulls, missing bool
}

// pair is a key of a map, its value, and, in a projection, what is owned of the value.
type pair struct {
	key   string
	value any
	owned fields
}

func comparePairs(a, b pair) int { return strings.Compare(a.key, b.key) }

var encoders = sync.Pool{New: func() any { return &encoder{buf: make([]byte, 0, 4096)} }}

// largestPooled limits pooled buffers, so that one large object does not keep its buffer forever.
const largestPooled = 1 << 18

func (e *encoder) release() {
	if cap(e.buf) > largestPooled || cap(e.todo) > largestPooled/64 {
		return
	}
	clear(e.todo[:e.most])
	for _, it := range e.free {
		it.read(nil)
		clear(it.keys[:cap(it.keys)])
		clear(it.names[:cap(it.names)])
	}
	e.buf, e.todo, e.most, e.nulls, e.missing = e.buf[:0], e.todo[:0], 0, false, false
	encoders.Put(e)
}

func (e *encoder) value(v any) {
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
		e.fields(v)
	case []any:
		e.buf = append(e.buf, 'l')
		for _, item := range v {
			e.value(item)
		}
		e.buf = append(e.buf, 'e')
	default:
		e.other(v)
	}
}

func (e *encoder) fields(m map[string]any) {
	from := len(e.todo)
	for k, v := range m {
		if v != nil || e.nulls {
			e.todo = append(e.todo, pair{key: k, value: v})
		}
	}
	to := e.sort(from)
	e.buf = append(e.buf, 'm')
	for i := from; i < to; i++ {
		e.text('k', e.todo[i].key)
		e.value(e.todo[i].value)
	}
	e.buf = append(e.buf, 'e')
	e.todo = e.todo[:from]
}

// sort sorts the pairs after an index and returns their end.
func (e *encoder) sort(from int) int {
	slices.SortFunc(e.todo[from:], comparePairs)
	e.most = max(e.most, len(e.todo))
	return len(e.todo)
}

func (e *encoder) text(letter byte, s string) {
	e.buf = append(e.buf, letter)
	e.buf = binary.AppendUvarint(e.buf, uint64(len(s)))
	e.buf = append(e.buf, s...)
}

func (e *encoder) integer(i int64) {
	e.buf = append(e.buf, 'i')
	e.buf = binary.BigEndian.AppendUint64(e.buf, uint64(i))
}

func (e *encoder) float(f float64) {
	if i, ok := integral(f); ok {
		e.integer(i)
		return
	}
	e.buf = append(e.buf, 'd')
	e.buf = binary.BigEndian.AppendUint64(e.buf, math.Float64bits(f))
}

// other writes values that are not of JSON types, such as an int, as Canonical converts them, else as their JSON, so that a
// digest never fails.
func (e *encoder) other(v any) {
	if c, err := canonicalNumber(v, nil); err == nil {
		e.value(c)
		return
	}
	text, err := json.Marshal(v)
	if err != nil {
		text = fmt.Appendf(nil, "%T %v", v, v)
	}
	e.text('j', string(text))
}
