package apply

import (
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Lengths of messages in characters. An API server's response can have megabytes, because it quotes the refused value;
// an event has at most 1024.
const (
	maxCause   = 240
	maxCauses  = 3
	maxMessage = 500
)

// explain returns why the request failed.
func (e *Error) explain() string {
	switch {
	case errors.Is(e.Meaning, ErrOwned):
		return oneLineText(e.Err) + ": leave the field out of the template, or set force: true"
	case e.Meaning != nil:
		return e.Meaning.Error()
	}
	if _, ok := status(e.Err); !ok {
		return oneLineText(e.Err)
	}
	switch reason(e) {
	case ReasonForbidden:
		if Impersonating(e) {
			return oneLineText(e.Err) // it says who needs which right
		}
		return oneLineText(e.Err) + "; needs: " + e.right()
	case ReasonKindNotServed:
		return e.notServed()
	}
	return oneLineText(e.Err)
}

// right returns the missing right in RBAC's terms: "patch deployments.apps in namespace apps".
func (e *Error) right() string {
	s := e.op.needs + " " + e.Target.resource(e.op.sub)
	if e.Target.Namespace != "" {
		s += " in namespace " + e.Target.Namespace
	}
	return s
}

func (e *Error) notServed() string {
	if s, ok := status(e.Err); ok && s.Reason != metav1.StatusReasonNotFound {
		return oneLineText(e.Err)
	}
	what := e.Target.resource(e.op.sub)
	return fmt.Sprintf("the API server does not serve %s in version %s; is its CustomResourceDefinition installed, "+
		"with that version%s?", what, e.Target.GVR.Version, map[bool]string{true: " and that subresource"}[e.op.sub != ""])
}

// oneLineText returns an error on one line: the causes of an API server's response, each once, or its message if there
// are none.
func oneLineText(err error) string {
	var encode *EncodeError
	if errors.As(err, &encode) {
		return shorten(encode.Error(), maxMessage)
	}
	s, ok := status(err)
	if !ok {
		return shorten(plain(err.Error()), maxMessage)
	}
	if causes := fieldCauses(s); len(causes) > 0 {
		return strings.Join(causes, "; ")
	}
	return shorten(plain(s.Message), maxMessage)
}

// fieldCauses returns "spec.replicas: must be …" for each refused field. The API server may report one twice.
func fieldCauses(s metav1.Status) []string {
	if s.Details == nil || s.Reason != metav1.StatusReasonInvalid {
		return nil
	}
	var out []string
	seen := map[string]bool{}
	more := 0
	for _, c := range causesOfFields(s.Details.Causes) {
		text := c.Message
		if c.Field != "" {
			text = c.Field + ": " + text
		}
		if text = shorten(text, maxCause); text == "" || seen[text] {
			continue
		}
		if seen[text] = true; len(out) == maxCauses {
			more++
			continue
		}
		out = append(out, text)
	}
	if more > 0 {
		out = append(out, fmt.Sprintf("and %d more", more))
	}
	return out
}

// shorten puts s on one line and removes its middle if it exceeds limit: the start says where, the end says what ("…:
// field is immutable").
func shorten(s string, limit int) string {
	r := []rune(strings.Join(strings.Fields(strings.ToValidUTF8(s, "\uFFFD")), " "))
	if len(r) <= limit {
		return string(r)
	}
	head := limit / 3
	return string(r[:head]) + " … " + string(r[len(r)-(limit-head-3):])
}
