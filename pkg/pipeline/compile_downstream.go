package pipeline

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/rules"
	"github.com/corollary-dev/corollary/pkg/status"
)

func (c *compiler) downstream(i int) {
	d, cfg := c.p.Downstreams[i], c.p.Downstreams[i].Config
	path := fmt.Sprintf("downstreams[%d]", i)
	c.forEach(d, path)
	c.when(d, path)
	c.template(d)
	c.scope(d, path)
	c.conventions(d)
	c.statusReads(d)
	d.ready = c.readyRules(d, path+".ready.rules", cfg.Ready.Rules, "waiting for")
	d.failed = c.readyRules(d, path+".ready.failed", cfg.Ready.Failed, "failed, since")
	switch cfg.Ready.ObservedGeneration {
	case config.ObservedRequired:
		d.hasObservedGeneration = true
	case config.ObservedOptional:
	default:
		d.hasObservedGeneration = d.Kind.Schema != nil && d.Kind.HasStatus && status.Probe(d.Kind.Schema).Stores(observedGenerationPath)
	}
	if cfg.Ready.MessageFrom != "" {
		d.messageFrom = c.program(path+".ready.messageFrom", func() (*rules.Program, error) {
			return c.env.String(cfg.Ready.MessageFrom, rules.Downstream, d.Name)
		})
	}
	for _, r := range slices.Concat(d.ready, d.failed, []readyRule{{program: d.messageFrom}}) {
		d.readsItem = d.readsItem || r.program != nil && reaches(r.program.Reads, "item", "")
	}
	d.View.Initial = parsePaths(cfg.Drift.InitialFields)
	for _, g := range cfg.Generated {
		if key, ok := g.Key(); ok && g.Length != nil {
			d.Generated = append(d.Generated, operator.GeneratedField{Key: key, Length: *g.Length, Characters: g.Charset.Characters()})
			d.View.Initial = append(d.View.Initial, fieldpath.New("data", key))
		}
	}
	d.View.Exclusive = parsePaths(cfg.Drift.ExclusiveFields)
}

// conventions compiles the labels and annotations that every document of ours gets.
func (c *compiler) conventions(d *Downstream) {
	if d.OwnsFields() { // others choose the labels of their objects
		return
	}
	d.labels = c.texts("conventions.labels", c.file.Operator.Conventions.Labels)
	d.annotations = c.texts("conventions.annotations", c.file.Operator.Conventions.Annotations)
	for _, e := range slices.Concat(d.labels, d.annotations) {
		d.inputs.add(e.inputs...)
	}
	d.Selector = labels.Set{}
	for _, e := range d.labels {
		if value, ok := e.text.Constant(); ok {
			d.Selector[e.key] = value
		}
	}
}

// parsePaths parses paths, without those that the loader has reported.
func parsePaths(texts []string) []fieldpath.Path {
	var paths []fieldpath.Path
	for _, text := range texts {
		if path, err := fieldpath.Parse(text); err == nil {
			paths = append(paths, path)
		}
	}
	return paths
}

// forEach compiles the items. It comes before all other expressions of the downstream, which may read item.
func (c *compiler) forEach(d *Downstream, path string) {
	if !d.Several() {
		return
	}
	d.items = c.program(path+".forEach.items", func() (*rules.Program, error) {
		return c.env.Items(d.Config.ForEach.Items, d.Name)
	})
	d.itemsInputs = c.programInputs(d.items)
	d.ItemsVary = len(d.itemsInputs) > 0 || d.items != nil && d.readsSiblings(d.items)
	c.p.readsStatus = c.p.readsStatus || (d.items != nil && readsStatus(d.items.Reads))
}

func (c *compiler) when(d *Downstream, path string) {
	if d.Config.When == "" || d.Config.When == "true" {
		return
	}
	d.when = c.program(path+".when", func() (*rules.Program, error) {
		return c.env.Bool(d.Config.When, rules.Sibling, d.Name)
	})
	d.whenInputs = c.programInputs(d.when)
	c.p.readsStatus = c.p.readsStatus || (d.when != nil && readsStatus(d.when.Reads))
}

// scope holds the config to what owner references can do, once the scope of both kinds is known: what they cannot
// clean up needs the owner annotation and the finalizer.
func (c *compiler) scope(d *Downstream, path string) {
	up, conv := c.p.Upstream, c.file.Operator.Conventions
	if c.p.Upstream.GVR.Empty() || d.Kind.GVR.Empty() {
		return
	}
	switch {
	case up.Namespaced && !d.Kind.Namespaced:
		if conv.Owner.Annotation == "" {
			c.failOnce("conventions.owner", "add owner.annotation: a key of your domain", "a namespaced %s cannot own a cluster-scoped %s by reference", up.GVK.Kind, d.Kind.GVK.Kind)
		}
		if conv.Finalizer == "" {
			c.failOnce("conventions", "add finalizer: a name of your domain", "nothing but a finalizer can clean up a cluster-scoped %s after a namespaced %s", d.Kind.GVK.Kind, up.GVK.Kind)
		}
	case !up.Namespaced && d.Kind.Namespaced && d.Config.TargetNamespaces.From == config.NamespacesSame && up.GVK.GroupKind() != (schema.GroupKind{Kind: "Namespace"}):
		c.fail(path+".targetNamespaces", "set from: List with names, or from: Any",
			"a cluster-scoped %s has no namespace that a %s could share", up.GVK.Kind, d.Kind.GVK.Kind)
	}
}

func (c *compiler) readyRules(d *Downstream, path string, list []config.ReadyRule, lead string) []readyRule {
	var out []readyRule
	for i, r := range list {
		at := fmt.Sprintf("%s[%d].rule", path, i)
		program := c.program(at, func() (*rules.Program, error) {
			return c.env.Bool(r.Rule, rules.Downstream, d.Name)
		})
		message := r.Message
		if message == "" {
			message = lead + ": " + strings.Join(strings.Fields(r.Rule), " ")
		}
		out = append(out, readyRule{path: at, program: program, message: message})
	}
	return out
}
