// Package redact makes texts about Secrets that quote none of their values.
package redact

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Hidden stands for a value that must not be shown.
const Hidden = "…"

// Redactor is an error that has a text without values: the place, the rule, the function and the kind of the problem.
type Redactor interface {
	error
	// Redacted returns that text.
	Redacted() string
}

// Text returns the text without values of the first error in err's chain that has one, else what it is told to say.
func Text(err error, otherwise string) string {
	var r Redactor
	if errors.As(err, &r) {
		return r.Redacted()
	}
	return otherwise
}

// NotQuoted is what is said in the place of an error that nothing is known of.
const NotQuoted = "the error is not shown, because it may quote a value of a Secret"

// Errorf is fmt.Errorf with a text without values beside it: %s is for the author's words and names of types, which stay,
// %w gives the text without values of what it wraps, and what all other verbs are given is hidden.
func Errorf(format string, args ...any) error {
	return &problem{error: fmt.Errorf(format, args...), redacted: Sprintf(format, args...)}
}

// New gives err a text without values, of several parts each once.
func New(err error, parts ...string) error {
	slices.Sort(parts)
	return &problem{error: err, redacted: strings.Join(slices.Compact(parts), "; ")}
}

// Sprintf is the text without values of Errorf.
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

// Redacted is the text of the problem without values.
func (p *problem) Redacted() string { return p.redacted }
func (p *problem) Unwrap() error    { return p.error }

// WithoutValues is the text without values of err as an error: nobody who has it can quote one. The chain of err stays, for
// errors.Is and errors.As, save for what prints it.
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

// Redacted is the text itself: it has no values.
func (s *redactedError) Redacted() string { return s.text }
func (s *redactedError) Unwrap() error    { return s.err }

// Words are those that an author wrote: they may be shown wherever they come from.
type Words map[string]bool

// ownWords are fields that every object has.
const ownWords = "apiVersion kind metadata name namespace labels annotations ownerReferences finalizers uid resourceVersion spec data " +
	"stringData"

// NewWords takes the words out of an author's texts. Fields that every object has are among them.
func NewWords(texts ...string) Words {
	w := Words{}
	for _, text := range append(texts, ownWords) {
		for _, found := range word.FindAllString(text, -1) {
			w[found] = true
		}
	}
	return w
}

// word is a field, or a key of labels, annotations or data.
var word = regexp.MustCompile(`[A-Za-z0-9_$][A-Za-z0-9_$/-]*`)

// index is the place of an item in a list.
var index = regexp.MustCompile(`^[0-9]{1,3}$`)

// Path is the path of a field up to the first key that is neither an author's word nor a number: that may be a value.
// nil Words show all of it.
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
