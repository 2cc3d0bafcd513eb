package canonical

import (
	"encoding/hex"
	"strings"
)

// Sum is a digest of a JSON value: equal for values with the same canonical form, different for others (sha256 cut to
// 128 bits, because users could search for collisions of a weaker digest). It is comparable. Other versions may use
// another form, so store Text, which includes it.
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

// Digest returns the digest of a JSON value. Nulls in maps and the Go type of a number do not count: {"a": null} has
// the digest of {}, 1.0 the one of 1. v may nest as deep as a JSON decoder allows.
func Digest(v any) Sum {
	e := encoders.Get().(*Encoder)
	defer e.release()
	e.dropsNulls = true
	e.Value(v)
	return e.Sum()
}

// ExactDigest returns the digest of values in a row, in which nulls in maps count.
func ExactDigest(values ...any) Sum {
	e := encoders.Get().(*Encoder)
	defer e.release()
	for _, v := range values {
		e.Value(v)
	}
	return e.Sum()
}
