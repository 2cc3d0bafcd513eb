package pipeline

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"github.com/corollary-dev/corollary/pkg/drift"
)

// Mask hides in a text what the Secrets among the inputs hold. Templates, expressions and the API server quote the value
// that they complain about, and what they say ends up in conditions, events and the log, which more people may read than a
// Secret.
func (p *Pipeline) Mask(in Inputs, text string) string {
	for _, value := range p.secretsIn(in) {
		text = strings.ReplaceAll(text, value, drift.Masked)
	}
	return text
}

// shortestSecret is how long a value is at least that Mask hides: hiding shorter ones would tear up any text and hide
// nothing that cannot be guessed.
const shortestSecret = 4

// secretsIn lists the values of Secrets as they stand, decoded, and as %q and JSON write them, the longest first: one may be a
// part of another.
func (p *Pipeline) secretsIn(in Inputs) []string {
	var values []string
	for _, s := range p.Inputs {
		if s.Kind.GVK.Kind != "Secret" || s.Kind.GVK.Group != "" {
			continue
		}
		data := asMap(asMap(in.objects[s.Name])["data"])
		for _, v := range data {
			text, _ := v.(string)
			values = append(values, text)
			if plain, err := base64.StdEncoding.DecodeString(text); err == nil {
				values = append(values, string(plain), strings.TrimSpace(string(plain)))
			}
		}
	}
	for _, v := range slices.Clone(values) {
		quoted := fmt.Sprintf("%q", v)
		values = append(values, quoted[1:len(quoted)-1])
	}
	values = slices.DeleteFunc(values, func(v string) bool { return len(v) < shortestSecret })
	slices.SortFunc(values, func(a, b string) int { return len(b) - len(a) })
	return slices.Compact(values)
}

// masked is an error in whose text secrets are hidden.
type masked struct {
	text string
	err  error
}

func (m *masked) Error() string { return m.text }
func (m *masked) Unwrap() error { return m.err }

// maskError hides what Mask hides in an error's text; nil and an error that tells nothing of it stay as they are.
func (p *Pipeline) maskError(in Inputs, err error) error {
	if err == nil {
		return nil
	}
	was := err.Error()
	if text := p.Mask(in, was); text != was {
		return &masked{text, err}
	}
	return err
}
