package drift

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base32"
	"regexp"
	"strings"
)

// Algorithm is how an object is hashed.
type Algorithm string

// The algorithms. The hash tells one desired state from another; it protects nothing, so each of them will do.
const (
	SHA256 Algorithm = "sha256"
	SHA1   Algorithm = "sha1"
	MD5    Algorithm = "md5"
)

// Valid reports whether a is one of the algorithms.
func (a Algorithm) Valid() bool { return a == SHA256 || a == SHA1 || a == MD5 }

// HashVersion stands before each hash. It changes with the canonical form or the encoding, so that a hash that an older
// version wrote is recognized as such instead of looking like a changed desired state of the same form.
const HashVersion = "v1-"

// lowerBase32 is base32hex in lower case without padding: it has 5 bits a letter, only letters and digits.
var lowerBase32 = base32.NewEncoding("0123456789abcdefghijklmnopqrstuv").WithPadding(base32.NoPadding)

// Hash returns the hash of an object as text for an annotation or a label. The order of keys and the Go types of numbers
// do not count; pass what Canonical returned, less what shall not count.
//
// A label's value has at most 63 characters of [A-Za-z0-9-_.] and begins and ends with a letter or digit. 256 bits as
// hexadecimal text are 64 characters, one too many, so the digest is written as base32hex: sha256 gives 55 characters
// with the version prefix, sha1 35, md5 29, and nothing need be cut off.
//
// An algorithm that is not Valid is a mistake of the caller and panics.
func Hash(a Algorithm, obj map[string]any) string {
	e := encoders.Get().(*encoder)
	defer e.release()
	e.value(obj)
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
		panic("drift: hash algorithm " + string(a) + " is none of sha256, sha1, md5")
	}
}

// CurrentHash reports whether a hash read from an object has the form that Hash writes today. One that has not was
// written by another version, or by somebody else.
func CurrentHash(hash string) bool { return strings.HasPrefix(hash, HashVersion) }

// OtherForm reports whether a hash read from an object is one that another version of this program wrote, in a form that
// is no longer, or not yet, that of Hash.
func OtherForm(hash string) bool { return !CurrentHash(hash) && versioned.MatchString(hash) }

// versioned matches what any version of Hash writes.
var versioned = regexp.MustCompile(`^v[0-9]+-[0-9a-v]+$`)

// Key is where something rides on an object: under an annotation or under a label. Exactly one is set.
type Key struct{ Annotation, Label string }

// read returns the value under the key in an object's metadata, "" if there is none.
func (k Key) read(metadata map[string]any) string {
	if k.Label != "" {
		return textAt(metadata, "labels", k.Label)
	}
	if k.Annotation != "" {
		return textAt(metadata, "annotations", k.Annotation)
	}
	return ""
}

func textAt(metadata map[string]any, field, key string) string {
	m, _ := metadata[field].(map[string]any)
	s, _ := m[key].(string)
	return s
}
