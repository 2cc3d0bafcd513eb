package canonical

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base32"
	"regexp"
	"strings"
)

// Algorithm is a hash algorithm.
type Algorithm string

// The algorithms. The hash only distinguishes desired states, it is not a protection, so all of them are good enough.
const (
	SHA256 Algorithm = "sha256"
	SHA1   Algorithm = "sha1"
	MD5    Algorithm = "md5"
)

// Valid reports whether a is one of the algorithms.
func (a Algorithm) Valid() bool { return a == SHA256 || a == SHA1 || a == MD5 }

// HashVersion precedes each hash. Change it with the canonical form or the encoding, so that a hash of an older version
// is recognized and does not look like another desired state.
const HashVersion = "v1-"

// lowerBase32 is lower case base32hex without padding: 5 bits per character, only letters and digits.
var lowerBase32 = base32.NewEncoding("0123456789abcdefghijklmnopqrstuv").WithPadding(base32.NoPadding)

// Hash returns the hash of an object, for an annotation or a label. The order of keys and the Go types of numbers do
// not count, nulls do; pass the result of Form, without what should not count. A label has at most 63 characters, and
// sha256 as hexadecimal text has 64, so the hash is base32hex: 55 characters for sha256 with the version, 35 for sha1,
// 29 for md5. It panics if the algorithm is not valid.
func Hash(a Algorithm, obj map[string]any) string {
	e := encoders.Get().(*Encoder)
	defer e.release()
	e.Value(obj)
	return HashVersion + lowerBase32.EncodeToString(sumBytes(a, e.buf))
}

func sumBytes(a Algorithm, b []byte) []byte {
	switch a {
	case SHA256:
		s := sha256.Sum256(b)
		return s[:]
	case SHA1:
		s := sha1.Sum(b)
		return s[:]
	case MD5:
		s := md5.Sum(b)
		return s[:]
	default:
		panic("canonical: hash algorithm " + string(a) + " is none of sha256, sha1, md5")
	}
}

// CurrentHash reports whether a hash read from an object has the form of Hash. Otherwise another version, or someone
// else, wrote it.
func CurrentHash(hash string) bool { return strings.HasPrefix(hash, HashVersion) }

// OtherForm reports whether another version of this program wrote a hash, in another form than Hash.
func OtherForm(hash string) bool { return !CurrentHash(hash) && versioned.MatchString(hash) }

// versioned matches what any version of Hash writes, with what follows it on a Secret with generated values.
var versioned = regexp.MustCompile(`^v[0-9]+-[0-9a-v]+(-[0-9a-f]+)?$`)
