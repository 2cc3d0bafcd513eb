package pipeline

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/redact"
	"github.com/corollary-dev/corollary/pkg/render"
	"github.com/corollary-dev/corollary/pkg/rules"
)

// This file keeps the values of Secrets out of messages. Templates, expressions and the API server quote the value that they
// complain about, and conditions, events and logs are read by more people than a Secret. What reads one is known when a
// config is compiled; what it complains about is told without any value, since a part or an encoding of one is one too.

// reader is what an expression, a template or a validator reads of a variable.
type reader func(variable string) (paths [][]string, whole bool)

// secrets finds what reads a Secret. It comes after everything else is compiled.
func (c *compiler) secrets() {
	if isSecretKind(c.p.Upstream.GVK) {
		c.p.UpstreamWords = redact.NewWords()
	}
	for _, i := range c.p.order { // whether those that one reads hold a value is known
		c.secretDocument(c.p.Downstreams[i])
	}
	for i, d := range c.p.Downstreams {
		c.secretRules(d)
		if d.messageFrom != nil && c.readsSecret(d.messageFrom.Reads, d) {
			c.refuseSecret(fmt.Sprintf("downstreams[%d].ready.messageFrom", i), "a condition")
		}
	}
	if h := c.p.Before; h != nil {
		c.secretDocument(h.Object)
		h.hidesValues = c.programReadsSecret(h.done, h.Object) || c.programReadsSecret(h.failed, h.Object) || c.programReadsSecret(h.Object.when, nil)
	}
	c.p.quietRules = make([]bool, len(c.file.Operator.Validate))
	for i := range c.p.quietRules {
		if c.p.validator == nil {
			break
		}
		part := func(part rules.Part) reader {
			return func(variable string) ([][]string, bool) { return c.p.validator.ReadsOf(i, part, variable) }
		}
		c.p.quietRules[i] = c.readsSecret(part(rules.PartRule), nil)
		if c.readsSecret(part(rules.PartMessageExpression), nil) {
			c.refuseSecret(fmt.Sprintf("validate[%d].messageExpression", i), "a condition")
		}
	}
	c.secretInputs()
	for i, program := range c.p.fields {
		if c.programReadsSecret(program, nil) && !isBool(program) {
			c.refuseSecret(fmt.Sprintf("status.fields[%d].value", i), "a status")
		}
	}
}

// secretInputs marks the inputs for which errors of expressions can quote a value.
func (c *compiler) secretInputs() {
	for _, s := range c.p.Inputs {
		ofObject := s.matching != nil && isSecretKind(s.Kind.GVK) && reaches(s.matching.Reads, "object", "")
		s.hidesValues = ofObject || c.programReadsSecret(s.objectName, nil) || c.programReadsSecret(s.matching, nil)
	}
}

func (c *compiler) refuseSecret(path, where string) {
	c.fail(
		path,
		"read metadata.name or another field that is not a value, or return true or false",
		"it reads data of a Secret, and more people can read %s than the Secret",
		where,
	)
}

// isBool tells that an expression gives true or false, in which no value can be read.
func isBool(p *rules.Program) bool {
	s := p.Result()
	return s != nil && slices.Equal([]string(s.Type), []string{"boolean"})
}

// secretDocument finds out whether the document of a downstream can hold values of a Secret, and whether errors of making it
// can quote one. A digest of a value is none.
func (c *compiler) secretDocument(d *Downstream) {
	secretItems := c.programReadsSecret(d.items, nil)
	d.hidesValues = isSecretKind(c.p.Upstream.GVK) || secretItems || c.programReadsSecret(d.when, nil)
	hidden := isSecretKind(d.GVK()) || isSecretKind(c.p.Upstream.GVK) || secretItems
	texts := c.conventionTexts(d)
	if d.template != nil {
		texts = append(texts, c.reading(d.template))
	}
	for _, t := range texts {
		d.hidesValues = d.hidesValues || c.templateReadsSecret(t.InputReads)
		hidden = hidden || c.templateReadsSecret(t.InputShown)
	}
	if c.p.OnlyDeletes && d.Index != operator.BeforeIndex { // what the template read is not known
		d.Words = redact.NewWords()
		return
	}
	if !hidden {
		return
	}
	conv := c.file.Operator.Conventions
	author := []string{d.source.text}
	for _, entries := range []map[string]string{conv.Labels, conv.Annotations} {
		author = append(author, slices.Concat(slices.Collect(maps.Keys(entries)), slices.Collect(maps.Values(entries)))...)
	}
	d.Words = redact.NewWords(author...)
}

func (c *compiler) conventionTexts(d *Downstream) []text {
	var list []text
	for _, e := range slices.Concat(d.labels, d.annotations) {
		list = append(list, c.reading(e.text))
	}
	return list
}

// secretRules marks the ready rules whose errors can quote a value.
func (c *compiler) secretRules(d *Downstream) {
	for _, list := range [][]readyRule{d.ready, d.failed} {
		for i := range list {
			list[i].hidesValues = c.programReadsSecret(list[i].program, d)
		}
	}
}

func (c *compiler) programReadsSecret(p *rules.Program, d *Downstream) bool {
	return p != nil && c.readsSecret(p.Reads, d)
}

// readsSecret reports whether an expression reads what a Secret holds. d is its own downstream, if it has one.
func (c *compiler) readsSecret(reads reader, d *Downstream) bool {
	for _, s := range c.p.Inputs {
		if isSecretKind(s.Kind.GVK) && reaches(reads, "inputs", s.Name) {
			return true
		}
	}
	for _, other := range c.p.Downstreams {
		if other.Hidden() && reaches(reads, "downstreams", other.Name) {
			return true
		}
	}
	return isSecretKind(c.p.Upstream.GVK) && reaches(reads, "self", "") || d != nil && d.Hidden() && reaches(reads, "downstream", "")
}

func (c *compiler) templateReadsSecret(reads func(string) ([][]string, bool)) bool {
	return slices.ContainsFunc(c.p.Inputs, func(s *InputSource) bool {
		return isSecretKind(s.Kind.GVK) && reaches(reads, s.Name, "")
	}) || slices.ContainsFunc(c.p.Downstreams, func(d *Downstream) bool {
		return d.Hidden() && reaches(reads, render.DownstreamKey(d.Name), "")
	})
}

// reaches reports whether a variable, or the member of that name below it, is read where it can hold a value.
func reaches(reads reader, variable, member string) bool {
	paths, whole := reads(variable)
	return whole || slices.ContainsFunc(paths, func(path []string) bool {
		if member == "" || len(path) == 0 {
			return redact.HoldsValues(path)
		}
		return path[0] == member && redact.HoldsValues(path[1:])
	})
}

// StatusMessage is what a live object's status says, as far as it may be repeated.
func (d *Downstream) StatusMessage(live *drift.Live) string {
	if d.Hidden() && live.StatusMessage != "" {
		return "its status is not repeated here, because it may quote a value of a Secret"
	}
	return live.StatusMessage
}

// StatusMessage is that of the downstream by its index.
func (p *Pipeline) StatusMessage(index int, live *drift.Live) string {
	if index < 0 || index >= len(p.Downstreams) {
		return live.StatusMessage
	}
	return p.Downstreams[index].StatusMessage(live)
}

// hideValues is err without values where quiet is true.
func hideValues(quiet bool, err error) error {
	if !quiet {
		return err
	}
	return redact.WithoutValues(err)
}

// textErrors are the errors of labels or annotations, and their text without values.
func textErrors(list field.ErrorList) error {
	if len(list) == 0 {
		return nil
	}
	slices.SortFunc(list, func(a, b *field.Error) int { return strings.Compare(a.Error(), b.Error()) }) // found in maps
	shown := make([]string, len(list))
	for i, e := range list {
		shown[i] = fmt.Sprintf("%s: %s: %s", e.Field, e.Type, e.Detail)
	}
	return redact.New(list.ToAggregate(), shown...)
}

func isSecretKind(gvk schema.GroupVersionKind) bool { return gvk.Group == "" && gvk.Kind == "Secret" }
