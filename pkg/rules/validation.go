package rules

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/rules/schema"
	"github.com/corollary-dev/corollary/pkg/spelling"
)

// Names of a Validation's fields in the config.
const (
	fieldRule              = "rule"
	fieldMessage           = "message"
	fieldMessageExpression = "messageExpression"
	fieldFieldPath         = "fieldPath"
	fieldReason            = "reason"
)

// maxMessage limits a message, as in a CRD.
const maxMessage = 2048

// IndexedError is an error in one field of one Validation.
type IndexedError struct {
	// Index is the index of the Validation.
	Index int
	// Field is rule, message, messageExpression, fieldPath or reason.
	Field string
	// Err is a *CompileError for rule and messageExpression, and a *ValueError for the others.
	Err error
}

// Error returns the index, the field and the error.
func (e IndexedError) Error() string { return fmt.Sprintf("[%d].%s: %v", e.Index, e.Field, e.Err) }

// Unwrap returns Err.
func (e IndexedError) Unwrap() error { return e.Err }

// ValueError is an error in a value that is not an expression.
type ValueError struct {
	Problem string
	Fix     string
}

// Error returns "problem: fix".
func (e *ValueError) Error() string { return e.Problem + ": " + e.Fix }

// CompileValidation compiles validations and checks them as a CRD would. It returns all errors, by index; the Validator
// is nil if there are any.
func CompileValidation(e *Env, rs []Validation) (*Validator, []IndexedError) {
	v := &Validator{rules: make([]validation, len(rs))}
	var errs []IndexedError
	for i, given := range rs {
		c := validationCompiler{env: e, given: given, fail: func(name string, err error) {
			errs = append(errs, IndexedError{Index: i, Field: name, Err: err})
		}}
		v.rules[i] = c.compile()
	}
	if len(errs) > 0 {
		return nil, errs
	}
	return v, nil
}

// validationCompiler compiles one Validation.
type validationCompiler struct {
	env   *Env
	given Validation
	fail  func(field string, err error)
}

func (c *validationCompiler) compile() validation {
	rule := strings.TrimSpace(c.given.Rule)
	r := validation{message: strings.TrimSpace(c.given.Message), reason: c.checkReason(), fieldPath: c.checkFieldPath()}
	var err error
	if r.rule, err = c.env.Bool(c.given.Rule, Upstream, ""); err != nil {
		c.fail(fieldRule, err)
	}
	if c.given.MessageExpression != "" {
		if r.messageExpression, err = c.env.String(c.given.MessageExpression, Upstream, ""); err != nil {
			c.fail(fieldMessageExpression, err)
		}
	}
	c.checkMessage(rule)
	if r.name = r.message; r.name == "" {
		r.name = rule
		r.message = "failed rule: " + rule
	}
	return r
}

// checkMessage checks the message; a rule of several lines requires one, because the rule cannot be the message.
func (c *validationCompiler) checkMessage(rule string) {
	given := c.given.Message
	trimmed := strings.TrimSpace(given)
	switch {
	case given != "" && trimmed == "":
		c.fail(fieldMessage, &ValueError{"it is blank", "write one, or leave it out"})
	case strings.ContainsAny(trimmed, "\n\r"):
		c.fail(fieldMessage, &ValueError{"it has line breaks", "write it on one line"})
	case len(given) > maxMessage:
		c.fail(fieldMessage, &ValueError{fmt.Sprintf("it has %d bytes", len(given)),
			fmt.Sprintf("at most %d are allowed", maxMessage)})
	case trimmed == "" && strings.ContainsAny(rule, "\n\r"):
		c.fail(fieldMessage, &ValueError{"it is missing, and the rule, which would be used instead, has line breaks",
			"write a message"})
	}
}

// checkReason checks the reason.
func (c *validationCompiler) checkReason() Reason {
	given := c.given.Reason
	if given == "" {
		return FieldValueInvalid
	}
	if words[given] == "" {
		names := make([]string, 0, len(words))
		for known := range words {
			names = append(names, string(known))
		}
		slices.Sort(names)
		fix := "it is one of " + strings.Join(names, ", ")
		if suggestion := spelling.Closest(string(given), names); suggestion != "" {
			fix = "did you mean " + suggestion + "?"
		}
		c.fail(fieldReason, &ValueError{fmt.Sprintf("%q is not a valid reason", given), fix})
	}
	return given
}

// checkFieldPath checks the path against the schema, as far as it is known, and returns it as the API server writes it.
func (c *validationCompiler) checkFieldPath() string {
	if c.given.FieldPath == "" {
		return ""
	}
	path, err := fieldpath.Parse(c.given.FieldPath)
	if err != nil {
		c.fail(fieldFieldPath, err)
		return ""
	}
	text, problem := pathText(c.env.self, path)
	if problem != nil {
		c.fail(fieldFieldPath, problem)
	}
	return text
}

// pathText follows a path through the schema and returns its text, or an error.
func pathText(n *schema.Node, path fieldpath.Path) (string, *ValueError) {
	var text *field.Path
	for i, step := range path {
		if step.Kind != fieldpath.FieldStep {
			return "", &ValueError{fmt.Sprintf("%s selects from a list", step),
				"name fields and keys of maps only, as in a CRD's fieldPath"}
		}
		switch {
		case n.Dyn && strings.ContainsAny(step.Field, "./"):
			text = text.Key(step.Field)
		case n.Dyn:
			text = text.Child(step.Field)
		case n.Values != nil:
			text, n = text.Key(step.Field), n.Values
		case n.Fields[step.Field] != nil:
			text, n = text.Child(step.Field), n.Fields[step.Field]
		default:
			return "", missing(path[:i], step.Field, n)
		}
	}
	return text.String(), nil
}

// missing describes a step that the schema does not have.
func missing(parent fieldpath.Path, name string, n *schema.Node) *ValueError {
	owner := "the object"
	if len(parent) > 0 {
		owner = parent.String()
	}
	problem := &ValueError{fmt.Sprintf("%s has no field %s", owner, name), "name a field of the schema"}
	names := make([]string, 0, len(n.Fields))
	for known := range n.Fields {
		names = append(names, known)
	}
	if suggestion := spelling.Closest(name, names); suggestion != "" {
		problem.Fix = "did you mean " + suggestion + "?"
	}
	return problem
}
