// Package redact makes messages about Secrets that contain none of their values.
package redact

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Hidden replaces a value in a message that must not be shown.
const Hidden = "…"

// Redactor is an error that also has a text without values: the place, the rule, the function and the kind of the
// problem.
type Redactor interface {
	error
	// Redacted returns the text without values.
	Redacted() string
}

// Text returns the text without values of the first Redactor in err's chain, or otherwise if there is none.
func Text(err error, otherwise string) string {
	var r Redactor
	if errors.As(err, &r) {
		return r.Redacted()
	}
	return otherwise
}

// NotQuoted replaces an error of unknown origin.
const NotQuoted = "the error is not shown, because it may quote a value of a Secret"

// Errorf is fmt.Errorf that also makes a text without values: it keeps the arguments of %s, which must be fixed words
// or names of types, uses the redacted text of an error for %w, and hides the arguments of all other verbs.
func Errorf(format string, args ...any) error {
	return &problem{error: fmt.Errorf(format, args...), redacted: Sprintf(format, args...)}
}

// New adds a text without values to err: the parts, each once.
func New(err error, parts ...string) error {
	slices.Sort(parts)
	return &problem{error: err, redacted: strings.Join(slices.Compact(parts), "; ")}
}

// Sprintf returns the text without values that Errorf would make.
func Sprintf(format string, args ...any) string {
	n := -1
	return verb.ReplaceAllStringFunc(format, func(v string) string {
		if v == "%%" {
			return "%"
		}
		if n++; n >= len(args) {
			return Hidden
		}
		switch v[len(v)-1] {
		case 's':
			return fmt.Sprintf(v, args[n])
		case 'w':
			err, _ := args[n].(error)
			return Text(err, NotQuoted)
		}
		return Hidden
	})
}

var verb = regexp.MustCompile(`%[-+# 0-9.]*[a-zA-Z%]`)

type problem struct {
	error
	redacted string
}

// Redacted implements Redactor.
func (p *problem) Redacted() string { return p.redacted }
func (p *problem) Unwrap() error    { return p.error }

// WithoutValues returns err with its text replaced by the text without values. The chain of err stays for errors.Is and
// errors.As, but prints no values.
func WithoutValues(err error) error {
	if err == nil {
		return nil
	}
	return &redactedError{text: Text(err, NotQuoted), err: err}
}

type redactedError struct {
	text string
	err  error
}

func (s *redactedError) Error() string { return s.text }

// Redacted returns the whole text: it contains no values.
func (s *redactedError) Redacted() string { return s.text }
func (s *redactedError) Unwrap() error    { return s.err }

// Words are words from a config: they may be shown even if they are also in an object.
type Words map[string]bool

// ownWords are fields that every object has.
const ownWords = "apiVersion kind metadata name namespace labels annotations ownerReferences finalizers uid " +
	"resourceVersion spec data " +
	"stringData"

// NewWords returns the words in the texts of a config, and the fields that every object has.
func NewWords(texts ...string) Words {
	w := Words{}
	for _, text := range append(texts, ownWords) {
		for _, found := range word.FindAllString(text, -1) {
			w[found] = true
		}
	}
	return w
}

// word matches a field, or a key of labels, annotations or data.
var word = regexp.MustCompile(`[A-Za-z0-9_$][A-Za-z0-9_$/-]*`)

// index matches the index of a list item.
var index = regexp.MustCompile(`^[0-9]{1,3}$`)

// Path returns the path of a field up to the first key that is neither a known word nor a number, because it may be a
// value. If w is nil, it returns the whole path.
func (w Words) Path(path string) string {
	if w == nil {
		return path
	}
	var b strings.Builder
	for at := 0; at < len(path); {
		if strings.ContainsRune(`.[]'"=,`, rune(path[at])) {
			b.WriteByte(path[at])
			at++
			continue
		}
		found := word.FindStringIndex(path[at:])
		if found == nil || found[0] != 0 || !w[path[at:at+found[1]]] && !index.MatchString(path[at:at+found[1]]) {
			return b.String() + Hidden
		}
		b.WriteString(path[at : at+found[1]])
		at += found[1]
	}
	return b.String()
}

// Hide returns err, without values if hide is true.
func Hide(hide bool, err error) error {
	if !hide {
		return err
	}
	return WithoutValues(err)
}
