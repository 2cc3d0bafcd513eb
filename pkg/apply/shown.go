package apply

import (
	"errors"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corollary-dev/corollary/pkg/redact"
)

// ClassifyShown is Classify for a document with values of a Secret: the API server and admission quote what they
// refuse, so the message only has paths and kinds of causes. words may be shown in a path; nil means Classify.
func ClassifyShown(err error, words redact.Words) Failure {
	f := Classify(err)
	if words == nil || err == nil {
		return f
	}
	var e *Error
	text := shownMessage(err, f.Reason, words)
	if errors.As(err, &e) {
		text = e.op.doing + " " + e.Target.String() + ": " + text
	}
	f.Message = text
	return f
}

// withheld ends a message without the API server's text.
const withheld = " (its message is not shown, because it may quote a value of a Secret)"

// shownMessage returns why a request failed, without values.
func shownMessage(err error, reason string, words redact.Words) string {
	var e *Error
	known := errors.As(err, &e)
	s, answered := status(err)
	switch {
	case known && e.Meaning != nil:
		return e.Meaning.Error()
	case !answered && (reason == ReasonUnavailable || reason == ReasonCanceled):
		if known {
			err = e.Err // ClassifyShown writes the start
		}
		return oneLineText(err)
	case !answered:
		return redact.Text(err, redact.NotQuoted)
	case known && reason == ReasonForbidden && !Impersonating(err):
		return "a right is missing; needs: " + e.right()
	case known && reason == ReasonKindNotServed && s.Reason == metav1.StatusReasonNotFound:
		return e.notServed()
	}
	if places := shownCauses(s, words); len(places) > 0 {
		return strings.Join(places, "; ") + withheld
	}
	if what := shownProse(s.Message, words); what != "" {
		return what + withheld
	}
	return "the API server refuses the request" + withheld
}

// causeTypes are the cause types of the API server. A webhook may send any text as one.
var causeTypes = []metav1.CauseType{metav1.CauseTypeFieldValueNotFound, metav1.CauseTypeFieldValueRequired,
	metav1.CauseTypeFieldValueDuplicate,
	metav1.CauseTypeFieldValueInvalid, metav1.CauseTypeFieldValueNotSupported,
	metav1.CauseTypeForbidden, metav1.CauseTypeTooLong,
	metav1.CauseTypeTooMany,
	metav1.CauseTypeInternal, metav1.CauseTypeTypeInvalid}

// shownCauses returns "spec.replicas: FieldValueInvalid" for each refused field.
func shownCauses(s metav1.Status, words redact.Words) []string {
	if s.Details == nil || s.Reason != metav1.StatusReasonInvalid {
		return nil
	}
	var out []string
	for _, c := range s.Details.Causes {
		text := "refused"
		if slices.Contains(causeTypes, c.Type) {
			text = string(c.Type)
		}
		if c.Field != "" {
			text = words.Path(c.Field) + ": " + text
		}
		if !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	if len(out) > maxCauses {
		out = append(out[:maxCauses], "and more")
	}
	return out
}
