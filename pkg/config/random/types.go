// Package random has the types of random values of Secrets.
package random

import (
	"strings"

	"github.com/corollary-dev/corollary/pkg/fieldpath"
)

// Generated is a random value of a Secret. It is made when the Secret is created or lacks the key, and nobody but the
// API server knows it.
type Generated struct {
	// Path is .data.KEY or .stringData.KEY; both mean the same key. A key with dots is quoted: .data['tls.key'].
	Path string `json:"path" form:"path"`
	// Length is the number of characters (default 32).
	Length *int `json:"length,omitempty" min:"1" max:"4096"`
	// Charset is alphanumeric (default), alphabetic, numeric, hex, or symbols (also punctuation, without quotes and
	// backslashes).
	Charset Charset `json:"charset,omitempty" enum:"alphanumeric,alphabetic,numeric,hex,symbols"`
}

// Charset names the characters of a generated value.
type Charset string

// The character sets.
const (
	// CharsetAlphanumeric has letters and digits.
	CharsetAlphanumeric Charset = "alphanumeric"
	// CharsetAlphabetic has letters.
	CharsetAlphabetic Charset = "alphabetic"
	// CharsetNumeric has digits.
	CharsetNumeric Charset = "numeric"
	// CharsetHex has the hexadecimal digits in lower case.
	CharsetHex Charset = "hex"
	// CharsetSymbols has letters, digits and punctuation, without what shells and YAML quote by.
	CharsetSymbols Charset = "symbols"
)

const (
	lowerCase = "abcdefghijklmnopqrstuvwxyz"
	digits    = "0123456789"
)

// Characters are those of the set, each once.
func (c Charset) Characters() string {
	letters := strings.ToUpper(lowerCase) + lowerCase
	switch c {
	case CharsetAlphabetic:
		return letters
	case CharsetNumeric:
		return digits
	case CharsetHex:
		return digits + "abcdef"
	case CharsetSymbols:
		return letters + digits + "!#%&()*+,-./:;<=>?@[]^_{|}~"
	default:
		return letters + digits
	}
}

// Key is the key of the Secret's data; false if the path is none of .data.KEY and .stringData.KEY.
func (g Generated) Key() (string, bool) {
	p, err := fieldpath.Parse(g.Path)
	if err != nil || len(p) != 2 || p[0].Kind != fieldpath.FieldStep || p[1].Kind != fieldpath.FieldStep {
		return "", false
	}
	return p[1].Field, p[0].Field == "data" || p[0].Field == "stringData"
}
