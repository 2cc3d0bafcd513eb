package pipeline

import (
	"slices"
	"strings"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/decide"
	"github.com/corollary-dev/corollary/pkg/operator/marks"
	"github.com/corollary-dev/corollary/pkg/rules"
	"github.com/corollary-dev/corollary/pkg/status"
)

// lookUpBefore finds the kind of deletion.before.
func (c *compiler) lookUpBefore(o Options) error {
	b := c.file.Operator.Deletion.Before
	if b == nil {
		return nil
	}
	kind, err := lookUp(o, b.APIVersion, b.Kind)
	if err != nil {
		return err
	}
	c.p.Before = &BeforeObject{Config: b, Object: &Downstream{Downstream: &operator.Downstream{
		Index: operator.BeforeIndex, Name: operator.BeforeName, Kind: *kind, HashPrefix: marks.BeforeHashPrefix,
		Config: &config.Downstream{Name: operator.BeforeName, APIVersion: b.APIVersion, Kind: b.Kind, Template: b.Template, TargetNamespaces: b.TargetNamespaces,
			AdoptionPolicy: config.AdoptNever, UpdatePolicy: config.UpdateCreateOnly, DeletionPolicy: config.DeletionDelete},
	}}}
	return nil
}

// before compiles deletion.before. What it reads of the upstream's status makes no downstream render again.
func (c *compiler) before() {
	h := c.p.Before
	if h == nil {
		return
	}
	const path = "deletion.before"
	file, first := c.file.BeforeTemplatePos()
	c.compileTemplate(h.Object, newSource(c.file, path+".template", h.Config.Template, file, first))
	c.scope(h.Object, path)
	c.conventions(h.Object)
	if h.Config.When != "" && h.Config.When != "true" {
		h.Object.when = c.program(path+".when", func() (*rules.Program, error) { return c.env.Bool(h.Config.When, rules.Upstream, operator.BeforeName) })
		h.Object.whenInputs = c.programInputs(h.Object.when)
	}
	h.done = c.beforeRule(path+".doneWhen", h.Config.DoneWhen)
	h.failed = c.beforeRule(path+".failedWhen", h.Config.FailedWhen)
	c.checkBeforeStatus(path)
	v := c.p.beforeView("metadata", "finalizers")
	keep(&v, h.done, "downstream", nil)
	keep(&v, h.failed, "downstream", nil)
	h.Object.View = v
}

// beforeView is what is kept in memory of a deletion.before object: the marks, and some fields.
func (p *Pipeline) beforeView(fields ...string) drift.View {
	conv := p.Config.Conventions
	return drift.View{Manager: conv.FieldManager, Hash: p.Hash, OwnerAnnotation: conv.Owner.Annotation, Aside: marks.Aside(p.Settings), Previous: p.Previous,
		Keep: [][]string{fields}}
}

func (c *compiler) beforeRule(path, text string) *rules.Program {
	return c.program(path, func() (*rules.Program, error) { return c.env.Bool(text, rules.Downstream, operator.BeforeName) })
}

// checkBeforeStatus holds the upstream's kind to what the outcome of deletion.before needs: a place in the status that only
// whoever may write the status can write, or anybody could say that it was done.
func (c *compiler) checkBeforeStatus(path string) {
	up, list := c.p.Upstream, c.file.Operator.Status.Downstreams
	switch {
	case !c.p.StatusEnabled() || list == "" || up.GVR.Empty() && up.Schema == nil:
		return // the loader reports the former; of an unknown kind nothing can be said
	case !up.HasStatus:
		c.fail(path, "add the status subresource to the CRD (subresources: {status: {}})",
			"the outcome is recorded in the status, and %s has no status subresource: whoever may write a %s could mark it as finished", up.GVK.Kind, up.GVK.Kind)
		return
	}
	if lacks := c.missingRecordFields(list); len(lacks) > 0 {
		c.fail(path, "add it to the CRD: corollary generate crd-status prints the lines", "the outcome is recorded in the status, and the schema of %s cannot store %s", up.GVK.Kind, strings.Join(lacks, ", "))
	}
}

// missingRecordFields lists what the schema cannot store of a record.
func (c *compiler) missingRecordFields(list string) []string {
	if !c.p.Storable.Stores(list) {
		return []string{list}
	}
	whole := decide.BeforeRecord(c.p.Settings, operator.Outcome{State: operator.StateBeforeFinished, UID: "uid", Target: operator.Ref{Namespace: "namespace", Name: "name"}})
	want := map[string]any{"status": map[string]any{}}
	_ = fieldpath.Set(want, c.p.DownstreamsPath, status.RecordedList([]status.Recorded{whole})) // the loader lets only maps stand on the way
	_, dropped := c.p.Storable.Fit(want["status"].(map[string]any))
	return slices.DeleteFunc(dropped, func(at string) bool {
		return at != list && !strings.HasPrefix(at, list+".") && !strings.HasPrefix(at, list+"[")
	})
}
