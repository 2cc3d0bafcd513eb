package values

import (
	"errors"
	"fmt"
	"strings"

	"github.com/corollary-dev/corollary/pkg/redact"
)

var (
	// ErrLimit means that rendering exceeds a limit. It will again, until the upstream, an input or the template changes.
	ErrLimit = errors.New("a limit of rendering is exceeded")
	// ErrTime means that rendering takes too long. A retry may succeed.
	ErrTime = errors.New("rendering takes too long")
)

// Problem is what is wrong with a value or a call; the caller adds the position.
type Problem struct { //nolint:errname // it becomes an Error once its position is known
	Text string
	// Kind is the text without values.
	Kind string
	Fix  string
	// Limit is ErrLimit, ErrTime, or the error of a Budget's larger; nil if no limit is exceeded.
	Limit error
}

// Error implements error.
func (p *Problem) Error() string { return p.Text }

// Problemf formats a problem. Use %s for fixed words and names of types, other verbs for values.
func Problemf(fix, format string, args ...any) error {
	return &Problem{Text: fmt.Sprintf(format, args...), Kind: redact.Sprintf(format, args...), Fix: fix}
}

const limitFix = "reduce the custom resource, or what the template makes of it"

// Limitf formats the problem that a limit is exceeded. The text must not have values.
func Limitf(format string, args ...any) error { return limitProblem(ErrLimit, format, args...) }

func limitProblem(limit error, format string, args ...any) error {
	text := fmt.Sprintf(format, args...)
	return &Problem{Text: text, Kind: text, Fix: limitFix, Limit: limit}
}

// Short shortens a text for a message.
func Short(s string) string {
	const most = 1000
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
